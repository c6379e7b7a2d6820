// Schemas through kafkajs's registry client and Confluent's: registered, records written and read through the broker.
'use strict'

// Confluent's client loads a great deal; only who asks for it waits.
const kinds = {
  kafkajs(url) {
    const { SchemaRegistry, SchemaType } = require('@kafkajs/confluent-schema-registry')
    const registry = new SchemaRegistry({ host: url, retry: { retries: 3 } })
    return {
      async register({ subject, type, schema }) {
        return (await registry.register({ type: SchemaType[type], schema }, { subject })).id
      },
      encode: (request, id, value) => registry.encode(id, value),
      decode: (request, buffer) => registry.decode(buffer),
    }
  },
  confluent(url) {
    const sr = require('@confluentinc/schemaregistry')
    const client = new sr.SchemaRegistryClient({ baseURLs: [url] })
    const serdes = {
      AVRO: [sr.AvroSerializer, sr.AvroDeserializer],
      JSON: [sr.JsonSerializer, sr.JsonDeserializer],
    }
    const made = (which, { type }) => new serdes[type][which](client, sr.SerdeType.VALUE, which ? {} : { useLatestVersion: true, autoRegisterSchemas: false })
    return {
      register: ({ subject, type, schema }) => client.register(subject, { schemaType: type, schema }),
      encode: (request, id, value) => made(0, request).serialize(request.topic, value),
      decode: (request, buffer) => made(1, request).deserialize(request.topic, buffer),
    }
  },
}

module.exports = kafka => ({
  // Registers the schema and writes the values with it; returns its id.
  async sr_write(request) {
    const client = kinds[request.client](request.url)
    const id = await client.register(request)
    const producer = kafka(request).producer()
    await producer.connect()
    const messages = []
    for (const value of request.objects) messages.push({ value: await client.encode(request, id, value) })
    await producer.send({ topic: request.topic, messages })
    await producer.disconnect()
    return { id }
  },
  // Reads `count` values of the topic, whoever wrote them.
  async sr_read(request) {
    const client = kinds[request.client](request.url)
    const consumer = kafka(request).consumer({ groupId: request.group, heartbeatInterval: 300, maxWaitTimeInMs: 100 })
    await consumer.connect()
    await consumer.subscribe({ topics: [request.topic], fromBeginning: true })
    const objects = []
    await new Promise((resolve, reject) => {
      consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error))
      consumer.run({
        eachMessage: async ({ message }) => {
          objects.push(await client.decode(request, message.value))
          if (objects.length >= request.count) resolve()
        },
      })
    })
    await consumer.disconnect()
    return { objects }
  },
})

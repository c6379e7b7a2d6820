// Drives kafkajs by JSON lines: one request per line in, one answer per line out, in order.
// The verbs are those of tests/java/clients/Groups.java, plus "copy", "…_acls" and "sr_…".
'use strict'

const readline = require('node:readline')
const { Kafka, PartitionAssigners, logLevel } = require('kafkajs')

const members = new Map()
const producers = new Map()
const open = new Map() // the transaction that each producer is in

const kafka = request =>
  new Kafka({
    clientId: 'ottla-tests',
    brokers: [request.bootstrap],
    logLevel: logLevel.NOTHING,
    retry: { initialRetryTime: 50, retries: 8 },
    ...secured(request.security),
  })

// How connections are secured; `authority` and `identity` are PEM texts.
const secured = security => {
  if (!security) return {}
  const { protocol, mechanism, authority, identity } = security
  return {
    ...(protocol.endsWith('SSL') && { ssl: { ca: [authority], ...(identity && { key: identity, cert: identity }) } }),
    ...(mechanism && { sasl: { mechanism: mechanism.toLowerCase(), ...login(security) } }),
  }
}

const login = ({ mechanism, user, password, token_url }) =>
  mechanism === 'OAUTHBEARER'
    ? { oauthBearerProvider: async () => ({ value: await bearer(user, password, token_url) }) }
    : { username: user, password }

// A new token of an identity provider, by client credentials.
const bearer = async (user, password, url) => {
  const body = new URLSearchParams({ grant_type: 'client_credentials', scope: 'kafka' })
  const authorization = `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`
  const answer = await fetch(url, { method: 'POST', headers: { authorization }, body })
  if (!answer.ok) throw new Error(`no token: ${answer.status} ${await answer.text()}`)
  return (await answer.json()).access_token
}

class Member {
  constructor() {
    Object.assign(this, { records: [], held: [], joins: 0, failed: null, next: new Map() })
  }

  async join(request) {
    if (request.protocol !== 'roundrobin') throw new Error(`kafkajs has no ${request.protocol}`)
    this.consumer = kafka(request).consumer({
      groupId: request.group,
      partitionAssigners: [PartitionAssigners.roundRobin],
      sessionTimeout: 10000,
      heartbeatInterval: 300,
      maxWaitTimeInMs: 100,
      readUncommitted: request.isolation !== 'read_committed',
    })
    const { GROUP_JOIN, CRASH } = this.consumer.events
    this.consumer.on(GROUP_JOIN, ({ payload }) => {
      this.joins += 1
      this.held = Object.entries(payload.memberAssignment).flatMap(([topic, partitions]) => partitions.map(each => [topic, each]))
    })
    this.consumer.on(CRASH, ({ payload }) => (this.failed = payload.error.name))
    await this.consumer.connect()
    await this.consumer.subscribe({ topics: request.topics, fromBeginning: true })
    await this.consumer.run({ autoCommit: false, eachMessage: async each => this.receive(each) })
  }

  receive({ topic, partition, message }) {
    const value = message.value === null ? null : message.value.toString()
    this.records.push([topic, partition, Number(message.offset), value])
    this.next.set(`${topic} ${partition}`, { topic, partition, offset: String(Number(message.offset) + 1) })
  }

  async commit() {
    await this.consumer.commitOffsets([...this.next.values()])
    return {}
  }

  state(request) {
    return {
      assigned: this.joins,
      revoked: 0,
      lost: 0,
      failed: this.failed,
      assignment: this.held,
      records: this.records.slice(request.from || 0),
    }
  }
}

const verbs = {
  async join(request) {
    const member = new Member()
    members.set(request.member, member)
    await member.join(request)
    return {}
  },
  state: request => members.get(request.member).state(request),
  commit: request => members.get(request.member).commit(),
  async leave(request) {
    await members.get(request.member).consumer.disconnect()
    members.delete(request.member)
    return {}
  },
  async txn_open(request) {
    const producer = kafka(request).producer({ transactionalId: request.id, idempotent: true, maxInFlightRequests: 1 })
    await producer.connect()
    producers.set(request.producer, producer)
    return {}
  },
  async txn_begin(request) {
    open.set(request.producer, await producers.get(request.producer).transaction())
    return {}
  },
  async txn_send(request) {
    const messages = request.values.map(value => ({ partition: request.partition, value }))
    await open.get(request.producer).send({ topic: request.topic, messages })
    return {}
  },
  async txn_commit(request) {
    await open.get(request.producer).commit()
    return {}
  },
  async txn_abort(request) {
    await open.get(request.producer).abort()
    return {}
  },
  async txn_close(request) {
    await producers.get(request.producer).disconnect()
    return {}
  },
  copy,
  ...require('./acls')(kafka),
  ...require('./schemas')(kafka),
}

// Moves `count` records from `topics` to `target`, each batch in a transaction that holds its offsets.
async function copy(request) {
  const producer = kafka(request).producer({ transactionalId: request.id, idempotent: true, maxInFlightRequests: 1 })
  const consumer = kafka(request).consumer({ groupId: request.group, heartbeatInterval: 300, maxWaitTimeInMs: 100, readUncommitted: false })
  await Promise.all([producer.connect(), consumer.connect()])
  await consumer.subscribe({ topics: request.topics, fromBeginning: true })
  let copied = 0
  await new Promise((resolve, reject) => {
    consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error))
    consumer.run({
      autoCommit: false,
      eachBatch: async ({ batch, resolveOffset }) => {
        const transaction = await producer.transaction()
        const messages = batch.messages.map(each => ({ value: `copy of ${each.value}` }))
        await transaction.send({ topic: request.target, messages })
        const offset = String(Number(batch.lastOffset()) + 1)
        const topics = [{ topic: batch.topic, partitions: [{ partition: batch.partition, offset }] }]
        await transaction.sendOffsets({ consumerGroupId: request.group, topics })
        await transaction.commit()
        resolveOffset(batch.lastOffset())
        copied += messages.length
        if (copied >= request.count) resolve()
      },
    })
  })
  await Promise.all([producer.disconnect(), consumer.disconnect()])
  return {}
}

async function main() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    let answer
    try {
      const request = JSON.parse(line)
      if (!(request.verb in verbs)) throw new Error(`no verb ${request.verb}`)
      answer = await verbs[request.verb](request)
    } catch (error) {
      answer = { error: error.name, message: error.message, trace: error.stack }
    }
    process.stdout.write(`${JSON.stringify(answer)}\n`)
  }
  process.exit(0)
}

main()

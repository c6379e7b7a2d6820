// Verbs that create, describe and delete ACLs. An entry is a list of texts: type, name, pattern, principal, host,
// operation, permission; in a filter null matches everything.
'use strict'

const { AclOperationTypes, AclPermissionTypes, AclResourceTypes, ResourcePatternTypes } = require('kafkajs')

const entry = ([type, name, pattern, principal, host, operation, permission]) => ({
  resourceType: AclResourceTypes[type ?? 'ANY'],
  resourceName: name ?? undefined,
  resourcePatternType: ResourcePatternTypes[pattern ?? 'ANY'],
  principal: principal ?? undefined,
  host: host ?? undefined,
  operation: AclOperationTypes[operation ?? 'ANY'],
  permissionType: AclPermissionTypes[permission ?? 'ANY'],
})

const word = (types, number) => Object.keys(types).find(each => types[each] === number)

const texts = ({ resourceType, resourceName, resourcePatternType }, { principal, host, operation, permissionType }) => [
  word(AclResourceTypes, resourceType),
  resourceName,
  word(ResourcePatternTypes, resourcePatternType),
  principal,
  host,
  word(AclOperationTypes, operation),
  word(AclPermissionTypes, permissionType),
]

module.exports = kafka => {
  const administering = async (request, work) => {
    const admin = kafka(request).admin()
    await admin.connect()
    try {
      return await work(admin)
    } finally {
      await admin.disconnect()
    }
  }
  return {
    create_acls: request =>
      administering(request, async admin => {
        await admin.createAcls({ acl: request.acls.map(entry) })
        return {}
      }),
    describe_acls: request =>
      administering(request, async admin => {
        const { resources } = await admin.describeAcls(entry(request.filter))
        return resources.flatMap(each => each.acls.map(acl => texts(each, acl)))
      }),
    delete_acls: request =>
      administering(request, async admin => {
        const { filterResponses } = await admin.deleteAcls({ filters: [entry(request.filter)] })
        return filterResponses.flatMap(each => each.matchingAcls.map(acl => texts(acl, acl)))
      }),
  }
}

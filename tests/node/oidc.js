// A real OpenID Connect provider on loopback: tokens for client credentials, signed with keys that it publishes.
// Prints its address as one line of JSON; ends when its standard input ends.
// Arguments: the lifetime of tokens in seconds, a PEM file with key and certificate ('' for plain HTTP), then client ids; each client's
// secret is its id with "-secret" behind it.
'use strict'

const fs = require('node:fs')
const http = require('node:http')
const https = require('node:https')
const AUDIENCE = 'kafka'

async function main([lifetime, pem, ...clients]) {
  const { Provider } = await import(require.resolve('oidc-provider'))
  const own = pem && fs.readFileSync(pem)
  const server = pem ? https.createServer({ key: own, cert: own }) : http.createServer()
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve))
  const issuer = `${pem ? 'https' : 'http'}://localhost:${server.address().port}`
  const provider = new Provider(issuer, {
    clients: clients.map(id => ({
      client_id: id,
      client_secret: `${id}-secret`,
      grant_types: ['client_credentials'],
      redirect_uris: [],
      response_types: [],
    })),
    scopes: ['kafka'],
    features: {
      clientCredentials: { enabled: true },
      devInteractions: { enabled: false },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => 'urn:kafka',
        useGrantedResource: () => true,
        getResourceServerInfo: () => ({
          scope: 'kafka',
          audience: AUDIENCE,
          accessTokenTTL: Number(lifetime),
          accessTokenFormat: 'jwt',
          jwt: { sign: { alg: 'RS256' } },
        }),
      },
    },
    extraTokenClaims: (_, token) => ({ sub: token.clientId }),
  })
  server.on('request', provider.callback())
  console.log(JSON.stringify({ issuer, audience: AUDIENCE, jwks: `${issuer}/jwks`, token: `${issuer}/token` }))
  process.stdin.on('end', () => process.exit(0)).resume()
}

main(process.argv.slice(2)).catch(error => {
  console.error(error)
  process.exit(1)
})

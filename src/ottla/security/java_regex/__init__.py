"""Regular expressions that operators write in Java's syntax, for names that clients choose.

`ssl.principal.mapping.rules` and `sasl.kerberos.principal.to.local.rules` are matched with the name in a certificate or
a ticket while a client connects. Java's and Python's own engines backtrack: Kafka's own example of a rule,
`^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$`, takes seconds for a name of 900 characters that has many fields,
and everybody else waits (in a worker thread, too, because `re` holds the interpreter's lock). So this package has an
engine of its own. It tries the ways to match in Java's order, so that the first match and its groups are Java's, but it
remembers every pair of a step of the program and a position of the text that has led nowhere, and tries none twice. The
work is at most the steps of the program times the characters of the name, and all rules together have a bound besides
(`limits.PRINCIPAL_RULES_WORK_MAX`): a name that takes more has no principal. `model.re2` bounds its work, too, but it
has another syntax and knows no groups.

What would not be bounded in this way is refused when the rule is read, which is when a node starts: back-references,
look-around, atomic groups and possessive quantifiers. What is rare in rules is refused as well, rather than read
differently: a repetition of what may be empty, as in `(a*)*` (Java's groups depend on what it has tried before), nested
character classes, `\\p{…}`, and flags other than `i` and `s`. So is a replacement that names a group that does not
exist, which Kafka finds out only with the first client.
"""

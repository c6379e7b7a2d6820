"""How a client secures its connections, in the words of each client."""

import ssl
from pathlib import Path
from typing import Any, NamedTuple

_MODULES = {"PLAIN": "plain.PlainLoginModule"}
_SCRAM = "scram.ScramLoginModule"
_TOKEN = ' tokenauth="true"'


class ClientSecurity(NamedTuple):
    """`protocol` is Kafka's `security.protocol`; `authority` and `identity` are PEM files, the latter with the client's
    key and certificate. With `is_token`, user and password are those of a delegation token. OAUTHBEARER (oauth.py) has
    its tokens from `token_url`. What does not apply is empty.
    """

    protocol: str = "PLAINTEXT"
    mechanism: str = ""
    user: str = ""
    password: str = ""
    authority: str = ""
    identity: str = ""
    is_token: bool = False
    token_url: str = ""

    def __str__(self) -> str:
        return " ".join(filter(None, (self.protocol, self.mechanism, "with a certificate" if self.identity else "")))

    def java(self) -> dict[str, str]:
        """Settings of the Java clients, which our client reads as well."""
        settings = self.java_tls()
        if self.mechanism:
            module = f"org.apache.kafka.common.security.{_MODULES.get(self.mechanism, _SCRAM)}"
            login = f'username="{self.user}" password="{self.password}"{_TOKEN if self.is_token else ""}'
            settings |= {"sasl.mechanism": self.mechanism, "sasl.jaas.config": f"{module} required {login};"}
        return settings

    def java_tls(self) -> dict[str, str]:
        """Those of them that are not about SASL."""
        settings = {"security.protocol": self.protocol}
        if self.authority:
            settings |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": self.authority}
        if self.identity:
            settings |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": self.identity}
        return settings

    def librdkafka(self) -> dict[str, str]:
        settings = {"security.protocol": self.protocol}
        if self.authority:
            settings["ssl.ca.location"] = self.authority
        if self.identity:
            settings |= {"ssl.certificate.location": self.identity, "ssl.key.location": self.identity}
        if self.mechanism:
            credentials = {"sasl.username": self.user, "sasl.password": self.password}
            settings |= {"sasl.mechanisms": self.mechanism, **credentials}
        return settings

    def python(self) -> dict[str, Any]:
        """Arguments of kafka-python's classes, and of aiokafka's."""
        arguments = self.python_tls()
        if self.mechanism:
            credentials = {"sasl_plain_username": self.user, "sasl_plain_password": self.password}
            arguments |= {"sasl_mechanism": self.mechanism, **credentials}
        return arguments

    def python_tls(self) -> dict[str, Any]:
        """Those of them that are not about SASL."""
        arguments: dict[str, Any] = {"security_protocol": self.protocol}
        if self.authority:
            context = ssl.create_default_context(cafile=self.authority)
            if self.identity:
                context.load_cert_chain(self.identity)
            arguments["ssl_context"] = context
        return arguments

    def aiokafka(self) -> dict[str, Any]:
        """Arguments of aiokafka's classes: those of kafka-python's, unless a mechanism takes objects of either."""
        return self.python()

    def texts(self) -> dict[str, Any]:
        """For the harnesses of franz-go and kafkajs: the fields, with the content of the files."""
        contents = {name: Path(path).read_text() for name, path in self._asdict().items() if path and name in _FILES}
        return self._asdict() | contents

    def command_config(self, path: Path) -> Path:
        """Write the file that Kafka's tools take as `--command-config`."""
        path.write_text("".join(f"{name}={value}\n" for name, value in self.java().items()))
        return path


_FILES = ("authority", "identity")
OPEN = ClientSecurity()

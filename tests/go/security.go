package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/jcmturner/gokrb5/v8/client"
	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/keytab"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/kerberos"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

// Security is how a client secures its connections; Authority and Identity are PEM texts. The password of GSSAPI is the
// path of a keytab, and Realms that of a krb5.conf.
type Security struct {
	Protocol  string `json:"protocol"`
	Mechanism string `json:"mechanism"`
	User      string `json:"user"`
	Password  string `json:"password"`
	Authority string `json:"authority"`
	Identity  string `json:"identity"`
	IsToken   bool   `json:"is_token"`
	TokenURL  string `json:"token_url"`
	Realms    string `json:"realms"`
}

// seeds are the options of every client: where the brokers are, and how they are reached.
func seeds(request *Request) ([]kgo.Opt, error) {
	opts := []kgo.Opt{kgo.SeedBrokers(request.Bootstrap)}
	s := request.Security
	if s == nil {
		return opts, nil
	}
	if strings.HasSuffix(s.Protocol, "SSL") {
		config := &tls.Config{RootCAs: x509.NewCertPool()}
		config.RootCAs.AppendCertsFromPEM([]byte(s.Authority))
		if s.Identity != "" {
			pair, err := tls.X509KeyPair([]byte(s.Identity), []byte(s.Identity))
			if err != nil {
				return nil, err
			}
			config.Certificates = []tls.Certificate{pair}
		}
		opts = append(opts, kgo.DialTLSConfig(config))
	}
	if s.Mechanism == "" {
		return opts, nil
	}
	mechanism, err := s.mechanism()
	return append(opts, kgo.SASL(mechanism)), err
}

func (s *Security) mechanism() (sasl.Mechanism, error) {
	login := scram.Auth{User: s.User, Pass: s.Password, IsToken: s.IsToken}
	switch s.Mechanism {
	case "PLAIN":
		return plain.Auth{User: s.User, Pass: s.Password}.AsMechanism(), nil
	case "SCRAM-SHA-256":
		return login.AsSha256Mechanism(), nil
	case "SCRAM-SHA-512":
		return login.AsSha512Mechanism(), nil
	case "OAUTHBEARER":
		return oauth.Oauth(s.bearer), nil
	case "GSSAPI":
		return s.kerberos()
	}
	return nil, fmt.Errorf("no mechanism %q", s.Mechanism)
}

// bearer asks the identity provider for a token.
func (s *Security) bearer(ctx context.Context) (oauth.Auth, error) {
	form := url.Values{"grant_type": {"client_credentials"}, "scope": {"kafka"}}
	request, err := http.NewRequestWithContext(ctx, "POST", s.TokenURL, strings.NewReader(form.Encode()))
	if err != nil {
		return oauth.Auth{}, err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.SetBasicAuth(s.User, s.Password)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return oauth.Auth{}, err
	}
	defer answer.Body.Close()
	var found struct {
		Token string `json:"access_token"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&found); err != nil || found.Token == "" {
		return oauth.Auth{}, fmt.Errorf("no token: %s, %v", answer.Status, err)
	}
	return oauth.Auth{Token: found.Token}, nil
}

// kerberos logs in with a keytab.
func (s *Security) kerberos() (sasl.Mechanism, error) {
	realms, err := config.Load(s.Realms)
	if err != nil {
		return nil, err
	}
	keys, err := keytab.Load(s.Password)
	if err != nil {
		return nil, err
	}
	name, realm, _ := strings.Cut(s.User, "@")
	return kerberos.Auth{
		Client:  client.NewWithKeytab(name, realm, keys, realms, client.DisablePAFXFAST(true)),
		Service: "kafka",
	}.AsMechanismWithClose(), nil
}

#include "store/tls_session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "support/temporary_folder.h"
#include "support/tls_server.h"

namespace lrun::launcher {
namespace {

using test::Authority;
using test::Identity;
using test::TlsServerEnd;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// Files of certificates, and two ends of a connection that pass their bytes on to each other.
class Tls : public ::testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) {
    std::string path = folder_.path() / name;
    std::ofstream(path) << text;
    return path;
  }
  TlsFiles trusting(const Authority& authority) { return {.authorities = file("ca.pem", authority.text())}; }

  /// \param piece  how many bytes at a time
  static void talk(TlsSession& client, TlsServerEnd& server, std::size_t piece = 1000) {
    while (true) {
      const std::string to_server = client.take_output();
      const std::string to_client = server.take_output();
      if (to_server.empty() && to_client.empty()) return;
      for (std::size_t i = 0; i < to_server.size(); i += piece)
        server.feed(std::string_view(to_server).substr(i, piece));
      for (std::size_t i = 0; i < to_client.size(); i += piece)
        client.feed(std::string_view(to_client).substr(i, piece));
    }
  }

  /// The outcome of a connection over which the client sends bytes as soon as it can.
  std::string end_of_talk(const TlsFiles& files, TlsServerEnd& server, const std::string& host = "localhost") {
    TlsSession client(files, host);
    talk(client, server);
    client.give("a word");
    talk(client, server);
    hint_ = client.hint();
    return client.refusal();
  }

  test::TemporaryFolder folder_;
  Authority authority_{"our authority"};
  std::string hint_;
};

TEST_F(Tls, SpeaksWithWhomWasAskedForHoweverItsBytesAreCut) {
  const Identity identity = authority_.sign({.names = "DNS:etcd1,DNS:*.etcd.cluster,IP:127.0.0.1,IP:::1"});
  for (const std::string host : {"etcd1", "a.etcd.cluster", "127.0.0.1", "::1"}) {
    for (const std::size_t piece : {1U, 7U, 100'000U}) {
      TlsServerEnd server(identity);
      TlsSession client(trusting(authority_), host);
      talk(client, server, piece);
      EXPECT_EQ(client.refusal(), "") << host;
      EXPECT_TRUE(client.is_open()) << host;
      client.give("question");
      talk(client, server, piece);
      EXPECT_EQ(server.words(), "question");
      server.give(std::string(100'000, 'x'));
      server.send_close();
      talk(client, server, piece);
      EXPECT_EQ(client.refusal(), "");
      EXPECT_TRUE(client.take_text() == std::string(100'000, 'x'));
      EXPECT_TRUE(client.is_closed()) << "nothing was cut off";
    }
  }
}

TEST_F(Tls, SaysWhyACertificateIsRefusedAndTellsItsOwnerNothing) {
  constexpr long kDay = 24L * 3600;
  const Authority other("somebody else");
  struct Case {
    Identity identity;
    std::string host, why, hint;
  };
  std::vector<Case> cases;
  cases.push_back({authority_.sign({.until = -1}), "localhost", "its certificate expired on 20", "clock"});
  cases.push_back({authority_.sign({.from = kDay, .until = 2 * kDay}), "localhost", "is not valid before 20", "clock"});
  cases.push_back({authority_.sign(), "etcd1", "its certificate is for 'localhost', '127.0.0.1' and not for 'etcd1'",
                   "--rdzv-endpoint"});
  cases.push_back({authority_.sign(), "127.0.0.2", "and not for '127.0.0.2'", "--rdzv-endpoint"});
  cases.push_back({authority_.sign({.names = ""}), "localhost", "is for no host and not for", "--rdzv-endpoint"});
  cases.push_back({other.sign(), "localhost", "is signed by 'CN=somebody else', which is not trusted here", "cacert="});
  cases.push_back({test::self_signed({}), "localhost", "is signed by 'CN=localhost', which is not", "cacert="});
  cases.push_back({authority_.sign({.use = "clientAuth"}), "localhost", "its certificate is refused: ", ""});
  for (const Case& one : cases) {
    TlsServerEnd server(one.identity);
    EXPECT_THAT(end_of_talk(trusting(authority_), server, one.host), HasSubstr(one.why));
    EXPECT_THAT(hint_, HasSubstr(one.hint)) << one.why;
    EXPECT_EQ(server.words(), "") << one.why;
  }
}

TEST_F(Tls, TrustsACertificateThatIsNamedItself) {
  const Identity identity = test::self_signed({});
  TlsServerEnd server(identity);
  EXPECT_EQ(end_of_talk({.authorities = file("own.pem", identity.certificate_text)}, server), "");
  EXPECT_EQ(server.words(), "a word");
}

/// Without a file the system's authorities are trusted, none of which a test has made.
TEST_F(Tls, TrustsNobodyUnlessTold) {
  TlsServerEnd server(authority_.sign());
  EXPECT_THAT(end_of_talk({}, server), HasSubstr("not trusted here"));
}

/// With TLS 1.3 a server reports it only when the client takes the connection for open.
TEST_F(Tls, ShowsItsOwnCertificate) {
  const Identity identity = authority_.sign();
  const Identity ours = authority_.sign({.use = "clientAuth"});
  const Identity foreign = Authority("nobody").sign({.use = "clientAuth"});
  for (const int newest : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    TlsFiles files = trusting(authority_);
    TlsServerEnd wanting(identity, &authority_, newest);
    EXPECT_EQ(end_of_talk(files, wanting), "it requires a client certificate");
    EXPECT_THAT(hint_, HasSubstr("cert=FILE,key=FILE"));

    files.certificate = file("foreign.pem", foreign.certificate_text);
    files.key = file("foreign.key", foreign.key_text);
    TlsServerEnd refusing(identity, &authority_, newest);
    EXPECT_THAT(end_of_talk(files, refusing), StartsWith("it rejects our certificate: "));

    files.certificate = file("ours.pem", ours.key_text + ours.certificate_text);
    files.key.clear();  // in the same file
    TlsServerEnd content(identity, &authority_, newest);
    EXPECT_EQ(end_of_talk(files, content), "");
    EXPECT_EQ(content.words(), "a word");
  }
}

TEST_F(Tls, SaysWhichOfItsOwnFilesIsOfNoUse) {
  const Identity ours = authority_.sign();
  const std::string certificate = file("ours.pem", ours.certificate_text);
  const std::string key = file("ours.key", ours.key_text);
  const std::string empty = file("empty", "-----BEGIN NOTHING-----\n");
  const std::string missing = folder_.path() / "missing";
  const std::string locked = file("locked.key", test::locked(*ours.key));
  const std::string other = file("other.key", authority_.sign().key_text);
  const Identity small = authority_.sign({.rsa_bits = 512});
  const std::string weak = file("weak.pem", small.key_text + small.certificate_text);
  const std::string sealed_text =
      "-----BEGIN CERTIFICATE-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00112233445566778899AABBCCDDEEFF\n\n"
      "AAAAAAAAAAAAAAAAAAAAAA==\n-----END CERTIFICATE-----\n";
  const std::string sealed = file("sealed.pem", sealed_text);
  const std::string sealed_behind = file("sealed_behind.pem", ours.key_text + ours.certificate_text + sealed_text);
  struct Case {
    TlsFiles files;
    std::string refusal;
  };
  for (const Case& one : {
           Case{{.authorities = missing}, "cannot read '" + missing + "': No such file or directory"},
           Case{{.authorities = folder_.path()},
                "cannot read '" + folder_.path().string() + "': it is not a file with"},
           Case{{.authorities = empty}, "cannot use '" + empty + "': it contains no certificate in PEM format"},
           Case{{.certificate = empty}, "cannot use '" + empty + "': it contains no certificate in PEM format"},
           Case{{.certificate = certificate}, "cannot use '" + certificate + "': it contains no private key"},
           Case{{.certificate = certificate, .key = empty}, "cannot use '" + empty + "': it contains no private key"},
           Case{{.certificate = certificate, .key = locked}, "cannot use '" + locked + "': its key needs a passphrase"},
           Case{{.authorities = sealed}, "cannot use '" + sealed + "': a certificate in it needs a passphrase"},
           Case{{.authorities = sealed_behind},
                "cannot use '" + sealed_behind + "': a certificate in it needs a passphrase"},
           Case{{.certificate = sealed}, "cannot use '" + sealed + "': a certificate in it needs a passphrase"},
           Case{{.certificate = sealed_behind},
                "cannot use '" + sealed_behind + "': a certificate in it needs a passphrase"},
           Case{{.certificate = weak}, "cannot use '" + weak + "': its certificate is refused: ee key too small"},
           Case{{.certificate = certificate, .key = other}, "cannot use '" + other + "': its key does not belong to"},
       }) {
    TlsSession client(one.files, "localhost");
    EXPECT_THAT(client.refusal(), StartsWith(one.refusal));
    EXPECT_TRUE(client.is_about_us()) << one.refusal;
    EXPECT_THAT(client.hint(), HasSubstr("PEM")) << one.refusal;
    EXPECT_EQ(client.take_output(), "") << one.refusal;
  }
}

TEST_F(Tls, KnowsWhatIsNoTls) {
  for (const std::string words : {"HTTP/1.1 400 Bad Request\r\n", "SSH-2.0-OpenSSH_9.2\r\n", "\x16", "\x15\x02\x01"}) {
    TlsSession client({}, "localhost");
    client.feed(words);
    if (words.size() == 1) {
      EXPECT_EQ(client.refusal(), "") << "it may be";
      client.feed("x");
    }
    EXPECT_EQ(client.refusal(), "it does not speak TLS") << words;
    EXPECT_FALSE(client.is_about_us());
  }
}

TEST_F(Tls, RefusesWhatIsTooOld) {
  TlsServerEnd server(authority_.sign(), nullptr, TLS1_1_VERSION);
  EXPECT_EQ(end_of_talk(trusting(authority_), server), "it does not support TLS 1.2 or newer");
}

/// Records of one byte each, of messages that never end.
TEST_F(Tls, ReadsABoundedHandshake) {
  for (const std::string& record :
       {std::string("\x16\x03\x03\x00\x01\x0b", 6), std::string("\x16\x03\x03\x00\x00", 5),
        std::string("\x14\x03\x03\x00\x01\x01", 6), std::string("\x15\x03\x03\x00\x02\x01\x5a", 7)}) {
    TlsSession client({}, "localhost");
    std::size_t taken = 0;
    while (client.refusal().empty() && taken <= 2 * kMostTlsHandshake) {
      client.feed(record);
      taken += record.size();
    }
    EXPECT_NE(client.refusal(), "");
    EXPECT_LE(taken, kMostTlsHandshake + record.size());
  }
  TlsSession client({}, "localhost");
  const std::string whole = std::string("\x16\x03\x03\x40\x00\x02\x00\xff\xff", 9) + std::string(16375, 'x');
  for (std::size_t taken = 0; taken <= kMostTlsHandshake; taken += whole.size()) client.feed(whole);
  EXPECT_NE(client.refusal(), "");
}

}  // namespace
}  // namespace lrun::launcher

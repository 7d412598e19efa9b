#include "store/openssl.h"

#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

namespace lrun::launcher {
namespace {

using Points = OpensslEntryPoints;

TEST(Openssl, HasTheNumbersOfItsHeaders) {
  EXPECT_EQ(Points::kNoCleanUpAtExit, std::uint64_t{OPENSSL_INIT_NO_ATEXIT});
  EXPECT_EQ(Points::kSetLeastVersion, SSL_CTRL_SET_MIN_PROTO_VERSION);
  EXPECT_EQ(Points::kAddToChain, SSL_CTRL_CHAIN_CERT);
  EXPECT_EQ(Points::kTls1_2, TLS1_2_VERSION);
  EXPECT_EQ(Points::kNoRenegotiation, std::uint64_t{SSL_OP_NO_RENEGOTIATION});
  EXPECT_EQ(Points::kSetHostName, SSL_CTRL_SET_TLSEXT_HOSTNAME);
  EXPECT_EQ(Points::kSetEndOfMemory, BIO_C_SET_BUF_MEM_EOF_RETURN);
  EXPECT_EQ(Points::kGetMemory, BIO_CTRL_INFO);
  EXPECT_EQ(Points::kVerifyPeer, SSL_VERIFY_PEER);
  EXPECT_EQ(Points::kTrustPartialChain, X509_V_FLAG_PARTIAL_CHAIN);
  EXPECT_EQ(Points::kWholeWildcardsInSubjectAltNames,
            X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
  EXPECT_EQ(Points::kWantsRead, SSL_ERROR_WANT_READ);
  EXPECT_EQ(Points::kEnd, SSL_ERROR_ZERO_RETURN);
  EXPECT_EQ(Points::kNameAsInRfc2253, XN_FLAG_RFC2253);
  EXPECT_EQ(Points::kSubjectAltName, NID_subject_alt_name);
  EXPECT_EQ(Points::kDnsName, GEN_DNS);
  EXPECT_EQ(Points::kIpAddress, GEN_IPADD);
}

TEST(Openssl, ReadsItsErrorsAsItsHeadersDo) {
  ASSERT_NE(openssl(), nullptr) << why_no_openssl();
  for (const int library : {ERR_LIB_SSL, ERR_LIB_X509}) {
    const unsigned long error = ERR_PACK(library, 0, SSL_R_UNSUPPORTED_PROTOCOL);
    EXPECT_EQ(openssl()->is_of_tls(error), library == ERR_LIB_SSL);
    EXPECT_EQ(openssl()->reason_of(error), SSL_R_UNSUPPORTED_PROTOCOL);
  }
}

}  // namespace
}  // namespace lrun::launcher

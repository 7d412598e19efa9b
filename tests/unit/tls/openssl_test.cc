#include "store/openssl.h"

#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <type_traits>

namespace lrun::launcher {
namespace {

using Points = OpensslEntryPoints;

template <class Type>
using Shape = std::conditional_t<std::is_pointer_v<Type>, void*, Type>;
/// The type of a function for which all pointers are the same.
template <class Result, class... Arguments>
Shape<Result> (*shape(Result (*)(Arguments...)))(Shape<Arguments>...);

#define HAS_THE_SHAPE_OF(point, function) \
  static_assert(std::is_same_v<decltype(shape(Points{}.point)), decltype(shape(&function))>)

TEST(Openssl, HasTheFunctionsOfItsHeaders) {
  HAS_THE_SHAPE_OF(version, OpenSSL_version_num);
  HAS_THE_SHAPE_OF(init, OPENSSL_init_ssl);
  HAS_THE_SHAPE_OF(clear_errors, ERR_clear_error);
  HAS_THE_SHAPE_OF(first_error, ERR_peek_error);
  HAS_THE_SHAPE_OF(last_error, ERR_peek_last_error);
  HAS_THE_SHAPE_OF(error_reason, ERR_reason_error_string);
  HAS_THE_SHAPE_OF(memory, BIO_s_mem);
  HAS_THE_SHAPE_OF(new_bio, BIO_new);
  HAS_THE_SHAPE_OF(bio_of, BIO_new_mem_buf);
  HAS_THE_SHAPE_OF(free_bio, BIO_free);
  HAS_THE_SHAPE_OF(bio_control, BIO_ctrl);
  HAS_THE_SHAPE_OF(bio_write, BIO_write);
  HAS_THE_SHAPE_OF(bio_read, BIO_read_ex);
  HAS_THE_SHAPE_OF(client_method, TLS_client_method);
  HAS_THE_SHAPE_OF(new_context, SSL_CTX_new);
  HAS_THE_SHAPE_OF(free_context, SSL_CTX_free);
  HAS_THE_SHAPE_OF(context_control, SSL_CTX_ctrl);
  HAS_THE_SHAPE_OF(set_options, SSL_CTX_set_options);
  HAS_THE_SHAPE_OF(on_certificate_request, SSL_CTX_set_cert_cb);
  HAS_THE_SHAPE_OF(trust_system, SSL_CTX_set_default_verify_paths);
  HAS_THE_SHAPE_OF(store_of, SSL_CTX_get_cert_store);
  HAS_THE_SHAPE_OF(add_to_store, X509_STORE_add_cert);
  HAS_THE_SHAPE_OF(use_certificate, SSL_CTX_use_certificate);
  HAS_THE_SHAPE_OF(certificate_of, SSL_CTX_get0_certificate);
  HAS_THE_SHAPE_OF(use_key, SSL_CTX_use_PrivateKey);
  HAS_THE_SHAPE_OF(new_ssl, SSL_new);
  HAS_THE_SHAPE_OF(free_ssl, SSL_free);
  HAS_THE_SHAPE_OF(set_bios, SSL_set_bio);
  HAS_THE_SHAPE_OF(set_data, SSL_set_ex_data);
  HAS_THE_SHAPE_OF(data_of, SSL_get_ex_data);
  HAS_THE_SHAPE_OF(set_verify, SSL_set_verify);
  HAS_THE_SHAPE_OF(be_client, SSL_set_connect_state);
  HAS_THE_SHAPE_OF(wanted_of, SSL_get0_param);
  HAS_THE_SHAPE_OF(control, SSL_ctrl);
  HAS_THE_SHAPE_OF(shake_hands, SSL_do_handshake);
  HAS_THE_SHAPE_OF(error_of, SSL_get_error);
  HAS_THE_SHAPE_OF(read, SSL_read_ex);
  HAS_THE_SHAPE_OF(write, SSL_write_ex);
  HAS_THE_SHAPE_OF(alert_text, SSL_alert_desc_string_long);
  HAS_THE_SHAPE_OF(set_flags, X509_VERIFY_PARAM_set_flags);
  HAS_THE_SHAPE_OF(set_host_flags, X509_VERIFY_PARAM_set_hostflags);
  HAS_THE_SHAPE_OF(want_address, X509_VERIFY_PARAM_set1_ip_asc);
  HAS_THE_SHAPE_OF(want_host, X509_VERIFY_PARAM_set1_host);
  HAS_THE_SHAPE_OF(index_of_ssl, SSL_get_ex_data_X509_STORE_CTX_idx);
  HAS_THE_SHAPE_OF(chain_data, X509_STORE_CTX_get_ex_data);
  HAS_THE_SHAPE_OF(chain_error, X509_STORE_CTX_get_error);
  HAS_THE_SHAPE_OF(chain_depth, X509_STORE_CTX_get_error_depth);
  HAS_THE_SHAPE_OF(chain_certificate, X509_STORE_CTX_get_current_cert);
  HAS_THE_SHAPE_OF(verify_text, X509_verify_cert_error_string);
  HAS_THE_SHAPE_OF(read_certificate, PEM_read_bio_X509);
  HAS_THE_SHAPE_OF(read_key, PEM_read_bio_PrivateKey);
  HAS_THE_SHAPE_OF(free_certificate, X509_free);
  HAS_THE_SHAPE_OF(free_key, EVP_PKEY_free);
  HAS_THE_SHAPE_OF(key_fits, X509_check_private_key);
  HAS_THE_SHAPE_OF(subject_of, X509_get_subject_name);
  HAS_THE_SHAPE_OF(issuer_of, X509_get_issuer_name);
  HAS_THE_SHAPE_OF(valid_until, X509_get0_notAfter);
  HAS_THE_SHAPE_OF(valid_from, X509_get0_notBefore);
  HAS_THE_SHAPE_OF(print_name, X509_NAME_print_ex);
  HAS_THE_SHAPE_OF(parts_of_time, ASN1_TIME_to_tm);
  HAS_THE_SHAPE_OF(bytes_of, ASN1_STRING_get0_data);
  HAS_THE_SHAPE_OF(size_of, ASN1_STRING_length);
  HAS_THE_SHAPE_OF(extension_of, X509_get_ext_d2i);
  HAS_THE_SHAPE_OF(free_names, GENERAL_NAMES_free);
  HAS_THE_SHAPE_OF(count_of, OPENSSL_sk_num);
  HAS_THE_SHAPE_OF(name_at, OPENSSL_sk_value);
}

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

TEST(Openssl, HasTheFaultsOfItsHeaders) {
  EXPECT_EQ(Points::kNoIssuer, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT);
  EXPECT_EQ(Points::kBadSignature, X509_V_ERR_CERT_SIGNATURE_FAILURE);
  EXPECT_EQ(Points::kNotYetValid, X509_V_ERR_CERT_NOT_YET_VALID);
  EXPECT_EQ(Points::kExpired, X509_V_ERR_CERT_HAS_EXPIRED);
  EXPECT_EQ(Points::kSelfSigned, X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT);
  EXPECT_EQ(Points::kSelfSignedInChain, X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN);
  EXPECT_EQ(Points::kNoIssuerHere, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY);
  EXPECT_EQ(Points::kNoChain, X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE);
  EXPECT_EQ(Points::kOtherHost, X509_V_ERR_HOSTNAME_MISMATCH);
  EXPECT_EQ(Points::kOtherAddress, X509_V_ERR_IP_ADDRESS_MISMATCH);
  EXPECT_EQ(Points::kHandshakeFailure, SSL_AD_HANDSHAKE_FAILURE);
  EXPECT_EQ(Points::kAccessDenied, SSL_AD_ACCESS_DENIED);
  EXPECT_EQ(Points::kProtocolVersion, SSL_AD_PROTOCOL_VERSION);
  EXPECT_EQ(Points::kFirstAlert, SSL_AD_REASON_OFFSET);
  EXPECT_EQ(Points::kUnsupportedProtocol, SSL_R_UNSUPPORTED_PROTOCOL);
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

#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <string>

namespace lrun::launcher {

/// Types and numbers of OpenSSL, as versions 1.1.1 and 3 have them alike. So no header of it is needed to build, and
/// lrun speaks TLS on every system with one of them.
struct OpensslTypes {
  using Context = struct OpaqueContext;
  using Ssl = struct OpaqueSsl;
  using Method = struct OpaqueMethod;
  using Bio = struct OpaqueBio;
  using BioMethod = struct OpaqueBioMethod;
  using Certificate = struct OpaqueCertificate;
  using Key = struct OpaqueKey;
  using Store = struct OpaqueStore;
  using Chain = struct OpaqueChain;
  using Wanted = struct OpaqueWanted;
  using Name = struct OpaqueName;
  using Time = struct OpaqueTime;
  using Text = struct OpaqueText;
  using Names = struct OpaqueNames;
  /// GENERAL_NAME.
  struct GeneralName {
    int type;
    const Text* text;
  };
  using AskPassphrase = int (*)(char* buffer, int size, int writes, void* data);

  static constexpr std::uint64_t kNoCleanUpAtExit = 0x80000;
  static constexpr int kSetLeastVersion = 123;  ///< of context_control
  static constexpr int kAddToChain = 89;        ///< the same
  static constexpr long kTls1_2 = 0x303;
  static constexpr std::uint64_t kNoRenegotiation = std::uint64_t{1} << 30U;
  static constexpr int kSetHostName = 55;      ///< of control
  static constexpr int kSetEndOfMemory = 130;  ///< of bio_control
  static constexpr int kGetMemory = 3;         ///< the same
  static constexpr int kVerifyPeer = 1;
  static constexpr unsigned long kTrustPartialChain = 0x80000;
  static constexpr unsigned kWholeWildcardsInSubjectAltNames = 0x4 | 0x20;
  static constexpr int kWantsRead = 2;  ///< of error_of
  static constexpr int kEnd = 6;        ///< the same
  static constexpr unsigned long kNameAsInRfc2253 = 0x1110317;
  static constexpr int kSubjectAltName = 85;
  static constexpr int kDnsName = 2;
  static constexpr int kIpAddress = 7;

  // Of chain_error.
  static constexpr int kNoIssuer = 2;
  static constexpr int kBadSignature = 7;
  static constexpr int kNotYetValid = 9;
  static constexpr int kExpired = 10;
  static constexpr int kSelfSigned = 18;
  static constexpr int kSelfSignedInChain = 19;
  static constexpr int kNoIssuerHere = 20;
  static constexpr int kNoChain = 21;
  static constexpr int kOtherHost = 62;
  static constexpr int kOtherAddress = 64;

  // Alerts of TLS (RFC 5246, section 7.2), and reasons of errors.
  static constexpr int kHandshakeFailure = 40;
  static constexpr int kAccessDenied = 49;
  static constexpr int kProtocolVersion = 70;
  static constexpr int kFirstAlert = 1000;
  static constexpr int kUnsupportedProtocol = 258;
};

/// The whole library, and its errors.
struct OpensslErrors : OpensslTypes {
  unsigned long (*version)() = nullptr;
  int (*init)(std::uint64_t options, const void* settings) = nullptr;
  void (*clear_errors)() = nullptr;
  unsigned long (*first_error)() = nullptr;
  unsigned long (*last_error)() = nullptr;
  const char* (*error_reason)(unsigned long) = nullptr;
};

struct OpensslContexts : OpensslTypes {
  const Method* (*client_method)() = nullptr;
  Context* (*new_context)(const Method*) = nullptr;
  void (*free_context)(Context*) = nullptr;
  long (*context_control)(Context*, int what, long number, void* data) = nullptr;
  std::uint64_t (*set_options)(Context*, std::uint64_t) = nullptr;
  void (*on_certificate_request)(Context*, int (*callback)(Ssl*, void*), void* data) = nullptr;
  int (*trust_system)(Context*) = nullptr;
  Store* (*store_of)(const Context*) = nullptr;
  int (*add_to_store)(Store*, Certificate*) = nullptr;
  int (*use_certificate)(Context*, Certificate*) = nullptr;
  Certificate* (*certificate_of)(const Context*) = nullptr;
  int (*use_key)(Context*, Key*) = nullptr;
};

struct OpensslConnections : OpensslTypes {
  Ssl* (*new_ssl)(Context*) = nullptr;
  void (*free_ssl)(Ssl*) = nullptr;
  void (*set_bios)(Ssl*, Bio* in, Bio* out) = nullptr;
  int (*set_data)(Ssl*, int index, void*) = nullptr;
  void* (*data_of)(const Ssl*, int index) = nullptr;
  void (*set_verify)(Ssl*, int mode, int (*callback)(int, Chain*)) = nullptr;
  void (*be_client)(Ssl*) = nullptr;
  Wanted* (*wanted_of)(Ssl*) = nullptr;
  long (*control)(Ssl*, int what, long number, void* data) = nullptr;
  int (*shake_hands)(Ssl*) = nullptr;
  int (*error_of)(const Ssl*, int result) = nullptr;
  int (*read)(Ssl*, void* bytes, std::size_t most, std::size_t* count) = nullptr;
  int (*write)(Ssl*, const void* bytes, std::size_t size, std::size_t* count) = nullptr;
  const char* (*alert_text)(int) = nullptr;
};

/// The host that is wanted, and the chain of certificates that is looked at.
struct OpensslChains : OpensslTypes {
  int (*set_flags)(Wanted*, unsigned long) = nullptr;
  void (*set_host_flags)(Wanted*, unsigned) = nullptr;
  int (*want_address)(Wanted*, const char*) = nullptr;
  int (*want_host)(Wanted*, const char*, std::size_t) = nullptr;
  int (*index_of_ssl)() = nullptr;
  void* (*chain_data)(const Chain*, int index) = nullptr;
  int (*chain_error)(const Chain*) = nullptr;
  int (*chain_depth)(const Chain*) = nullptr;
  Certificate* (*chain_certificate)(const Chain*) = nullptr;
  const char* (*verify_text)(long error) = nullptr;
};

/// Bytes in memory.
struct OpensslMemory : OpensslTypes {
  const BioMethod* (*memory)() = nullptr;
  Bio* (*new_bio)(const BioMethod*) = nullptr;
  Bio* (*bio_of)(const void* bytes, int size) = nullptr;
  int (*free_bio)(Bio*) = nullptr;
  long (*bio_control)(Bio*, int what, long number, void* data) = nullptr;
  int (*bio_write)(Bio*, const void* bytes, int size) = nullptr;
  int (*bio_read)(Bio*, void* bytes, std::size_t most, std::size_t* count) = nullptr;
};

/// Certificates and keys.
struct OpensslCertificates : OpensslTypes {
  Certificate* (*read_certificate)(Bio*, Certificate**, AskPassphrase, void* data) = nullptr;
  Key* (*read_key)(Bio*, Key**, AskPassphrase, void* data) = nullptr;
  void (*free_certificate)(Certificate*) = nullptr;
  void (*free_key)(Key*) = nullptr;
  int (*key_fits)(const Certificate*, const Key*) = nullptr;
  Name* (*subject_of)(const Certificate*) = nullptr;
  Name* (*issuer_of)(const Certificate*) = nullptr;
  const Time* (*valid_until)(const Certificate*) = nullptr;
  const Time* (*valid_from)(const Certificate*) = nullptr;
  int (*print_name)(Bio*, const Name*, int indent, unsigned long flags) = nullptr;
  int (*parts_of_time)(const Time*, std::tm*) = nullptr;
  const unsigned char* (*bytes_of)(const Text*) = nullptr;
  int (*size_of)(const Text*) = nullptr;
  void* (*extension_of)(const Certificate*, int kind, int* is_critical, int* index) = nullptr;
  void (*free_names)(Names*) = nullptr;
  int (*count_of)(const Names*) = nullptr;
  void* (*name_at)(const Names*, int index) = nullptr;
};

/// All entry points that lrun uses. Never null.
struct OpensslEntryPoints : OpensslErrors,
                            OpensslContexts,
                            OpensslConnections,
                            OpensslChains,
                            OpensslMemory,
                            OpensslCertificates {
  /// How the two versions put library and reason into an error.
  [[nodiscard]] bool is_of_tls(unsigned long error) const;
  [[nodiscard]] int reason_of(unsigned long error) const;
};

/// Opened at the first call, and stays loaded: that of the folder beside lrun's (`../lib`), as in a conda environment,
/// else that of the system. \return null: why_no_openssl()
const OpensslEntryPoints* openssl();

/// As a sentence without its end; empty: openssl() is there.
const std::string& why_no_openssl();

}  // namespace lrun::launcher

// In: nothing. Out: the entry points of the OpenSSL of this system. TlsEnd and its helpers call them.
#include "store/openssl.h"

#include <dlfcn.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <system_error>

namespace lrun::launcher {
namespace {

constexpr const char* kLibraries[] = {"libssl.so.3", "libssl.so.1.1"};

/// \param why_not  of the first that was tried
/// \return libssl or null. It brings libcrypto, in which dlsym() then looks as well.
void* open_library(std::string& why_not) {
  std::error_code error;
  const std::filesystem::path own = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  for (const std::string& folder : {(own / "../lib/").string(), std::string()}) {
    for (const char* const name : kLibraries) {
      const std::string file = folder + name;
      if (!folder.empty() && ::access(file.c_str(), F_OK) != 0) continue;
      if (void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL); library != nullptr) return library;
      const char* const words = ::dlerror();
      if (why_not.empty() && words != nullptr) why_not = words;
    }
  }
  return nullptr;
}

/// Looks entry points up, and remembers the first that is not there.
struct Finder {
  void* library;
  const char* missing = nullptr;

  template <class Function>
  void find(Function& function, const char* symbol) {
    function = reinterpret_cast<Function>(::dlsym(library, symbol));
    if (function == nullptr && missing == nullptr) missing = symbol;
  }
};

void find_errors(OpensslErrors& points, Finder& finder) {
  finder.find(points.version, "OpenSSL_version_num");
  finder.find(points.init, "OPENSSL_init_ssl");
  finder.find(points.clear_errors, "ERR_clear_error");
  finder.find(points.first_error, "ERR_peek_error");
  finder.find(points.last_error, "ERR_peek_last_error");
  finder.find(points.error_reason, "ERR_reason_error_string");
}

void find_contexts(OpensslContexts& points, Finder& finder) {
  finder.find(points.client_method, "TLS_client_method");
  finder.find(points.new_context, "SSL_CTX_new");
  finder.find(points.free_context, "SSL_CTX_free");
  finder.find(points.context_control, "SSL_CTX_ctrl");
  finder.find(points.set_options, "SSL_CTX_set_options");
  finder.find(points.on_certificate_request, "SSL_CTX_set_cert_cb");
  finder.find(points.trust_system, "SSL_CTX_set_default_verify_paths");
  finder.find(points.store_of, "SSL_CTX_get_cert_store");
  finder.find(points.add_to_store, "X509_STORE_add_cert");
  finder.find(points.use_certificate, "SSL_CTX_use_certificate");
  finder.find(points.certificate_of, "SSL_CTX_get0_certificate");
  finder.find(points.use_key, "SSL_CTX_use_PrivateKey");
}

void find_connections(OpensslConnections& points, Finder& finder) {
  finder.find(points.new_ssl, "SSL_new");
  finder.find(points.free_ssl, "SSL_free");
  finder.find(points.set_bios, "SSL_set_bio");
  finder.find(points.set_data, "SSL_set_ex_data");
  finder.find(points.data_of, "SSL_get_ex_data");
  finder.find(points.set_verify, "SSL_set_verify");
  finder.find(points.be_client, "SSL_set_connect_state");
  finder.find(points.wanted_of, "SSL_get0_param");
  finder.find(points.control, "SSL_ctrl");
  finder.find(points.shake_hands, "SSL_do_handshake");
  finder.find(points.error_of, "SSL_get_error");
  finder.find(points.read, "SSL_read_ex");
  finder.find(points.write, "SSL_write_ex");
  finder.find(points.alert_text, "SSL_alert_desc_string_long");
}

void find_chains(OpensslChains& points, Finder& finder) {
  finder.find(points.set_flags, "X509_VERIFY_PARAM_set_flags");
  finder.find(points.set_host_flags, "X509_VERIFY_PARAM_set_hostflags");
  finder.find(points.want_address, "X509_VERIFY_PARAM_set1_ip_asc");
  finder.find(points.want_host, "X509_VERIFY_PARAM_set1_host");
  finder.find(points.index_of_ssl, "SSL_get_ex_data_X509_STORE_CTX_idx");
  finder.find(points.chain_data, "X509_STORE_CTX_get_ex_data");
  finder.find(points.chain_error, "X509_STORE_CTX_get_error");
  finder.find(points.chain_depth, "X509_STORE_CTX_get_error_depth");
  finder.find(points.chain_certificate, "X509_STORE_CTX_get_current_cert");
  finder.find(points.verify_text, "X509_verify_cert_error_string");
}

void find_memory(OpensslMemory& points, Finder& finder) {
  finder.find(points.memory, "BIO_s_mem");
  finder.find(points.new_bio, "BIO_new");
  finder.find(points.bio_of, "BIO_new_mem_buf");
  finder.find(points.free_bio, "BIO_free");
  finder.find(points.bio_control, "BIO_ctrl");
  finder.find(points.bio_write, "BIO_write");
  finder.find(points.bio_read, "BIO_read_ex");
}

void find_certificates(OpensslCertificates& points, Finder& finder) {
  finder.find(points.read_certificate, "PEM_read_bio_X509");
  finder.find(points.read_key, "PEM_read_bio_PrivateKey");
  finder.find(points.free_certificate, "X509_free");
  finder.find(points.free_key, "EVP_PKEY_free");
  finder.find(points.key_fits, "X509_check_private_key");
  finder.find(points.subject_of, "X509_get_subject_name");
  finder.find(points.issuer_of, "X509_get_issuer_name");
  finder.find(points.valid_until, "X509_get0_notAfter");
  finder.find(points.valid_from, "X509_get0_notBefore");
  finder.find(points.print_name, "X509_NAME_print_ex");
  finder.find(points.parts_of_time, "ASN1_TIME_to_tm");
  finder.find(points.bytes_of, "ASN1_STRING_get0_data");
  finder.find(points.size_of, "ASN1_STRING_length");
  finder.find(points.extension_of, "X509_get_ext_d2i");
  finder.find(points.free_names, "GENERAL_NAMES_free");
  finder.find(points.count_of, "OPENSSL_sk_num");
  finder.find(points.name_at, "OPENSSL_sk_value");
}

struct Opened {
  std::optional<OpensslEntryPoints> points;
  std::string why_not;
};

Opened open() {
  std::string why_not;
  Finder finder{open_library(why_not)};
  if (finder.library == nullptr) return {{}, "TLS needs OpenSSL 3 or 1.1.1: " + why_not};
  OpensslEntryPoints points;
  find_errors(points, finder);
  find_contexts(points, finder);
  find_connections(points, finder);
  find_chains(points, finder);
  find_memory(points, finder);
  find_certificates(points, finder);
  if (finder.missing == nullptr) return {points, {}};
  return {{}, std::string("TLS needs OpenSSL 3 or 1.1.1: that of this system has no ") + finder.missing + "()"};
}

const Opened& opened() {
  static const Opened once = open();
  return once;
}

}  // namespace

bool OpensslEntryPoints::is_of_tls(unsigned long error) const {
  constexpr unsigned long kTlsLibrary = 20;
  return ((error >> (version() < 0x30000000UL ? 24U : 23U)) & 0xFFU) == kTlsLibrary;
}

int OpensslEntryPoints::reason_of(unsigned long error) const {
  return static_cast<int>(error & (version() < 0x30000000UL ? 0xFFFU : 0x7FFFFFU));
}

const OpensslEntryPoints* openssl() { return opened().points ? &*opened().points : nullptr; }

const std::string& why_no_openssl() { return opened().why_not; }

}  // namespace lrun::launcher

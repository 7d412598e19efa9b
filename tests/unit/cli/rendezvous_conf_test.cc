#include <gtest/gtest.h>

#include "unit/cli/parse_support.h"

namespace lrun::launcher {
namespace {

TEST(RendezvousConf, RefusesWhatIsNoListOrNoValue) {
  for (const std::string conf : {"join_timeout", "join_timeout=", "=5", "join_timeout=5,", " , "}) {
    EXPECT_EQ(refusal({"--rdzv-conf", conf, "p"}), "lrun: error: '--rdzv-conf " + conf +
                                                       "': not a list of KEY=VALUE with commas\n"
                                                       "lrun: hint: for example '--rdzv-conf join_timeout=600'\n");
  }
  expect_refused({
      {"--rdzv-conf=read_timeout=0",
       {"'--rdzv-conf read_timeout=0'", "'read_timeout'", "0", "'--rdzv-conf read_timeout=600'"}},
      {"--rdzv-conf=keep_alive_max_attempt=0",
       {"'--rdzv-conf keep_alive_max_attempt=0'", "'keep_alive_max_attempt'", "0",
        "'--rdzv-conf keep_alive_max_attempt=3'"}},
      {"--rdzv-conf=is_host=maybe", {"'--rdzv-conf is_host=maybe'", "'is_host'", "'--rdzv-conf is_host=true'"}},
  });
}

TEST(RendezvousConf, ReadsHowLaunchersWaitForEachOther) {
  const auto conf = [](const std::string& text) { return request_of({"--rdzv-conf=" + text, "p"}).rendezvous; };
  const RendezvousRequest all = conf(" join_timeout = 20 , is_host=Yes,last_call_timeout=2,read_timeout=3");
  EXPECT_EQ(all.join_timeout, Duration(20'000));
  EXPECT_EQ(all.is_host, true);
  EXPECT_EQ(all.last_call, Duration(2000));
  EXPECT_EQ(all.connect_timeout, Duration(3000));
  EXPECT_EQ(all.heartbeat, std::nullopt);
  EXPECT_EQ(conf("is_host=F").is_host, false);
  EXPECT_EQ(conf("heartbeat_timeout=1").heartbeat, Duration(1000));
  EXPECT_EQ(conf("keep_alive_interval=1,keep_alive_max_attempt=4").heartbeat, Duration(4000)) << "as in torchrun";
  EXPECT_EQ(conf("keep_alive_max_attempt=2").heartbeat, Duration(10'000));
}

TEST(RendezvousConf, TakesTheFolderOfAnEtcd) {
  EXPECT_EQ(request_of({"--rdzv-conf=protocol=http,etcd_prefix=/x/", "p"}).rendezvous.etcd_prefix, "/x");
  EXPECT_EQ(request_of({"--rdzv-conf=join_timeout=3", "p"}).rendezvous.etcd_prefix, "/lrun");
}

TEST(RendezvousConf, TakesTheCertificatesOfAnEtcdByTheNamesOfBothOfTorchrunsBackends) {
  const auto asked = [](const std::string& conf) { return request_of({"--rdzv-conf=" + conf, "p"}).rendezvous; };
  const EtcdTls files{.authorities = "a.pem", .certificate = "b.pem", .key = "b.key"};
  EXPECT_EQ(asked("protocol=HTTPS,cacert=a.pem,cert=b.pem,key=b.key").etcd_tls, files);
  EXPECT_EQ(asked("protocol=https,ca_cert=a.pem,ssl_cert=b.pem,ssl_cert_key=b.key").etcd_tls, files);
  EXPECT_TRUE(asked("protocol=https").etcd_is_asked_over_tls);
  EXPECT_FALSE(asked("cacert=a.pem").etcd_is_asked_over_tls);
  EXPECT_EQ(asked("certt=x").warnings.at(0),
            "'--rdzv-conf certt=x': 'certt' is unknown and ignored; did you mean 'cert'?");
  EXPECT_EQ(asked("cert=x").warnings.size(), 0U);
}

}  // namespace
}  // namespace lrun::launcher

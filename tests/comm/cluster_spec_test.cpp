#include "trireme/comm/cluster_spec.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <functional>

#include "tests/support/temporary_folder.hpp"
#include "trireme/base/error.hpp"

namespace trireme::comm {
namespace {

std::string refusal(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::bad_input);
    return error.what();
  }
  return "not refused";
}

std::string lists_refusal(const std::string& workers, const std::string& servers = "") {
  return refusal([&] { cluster_from_lists(workers, servers); });
}

std::string json_refusal(const std::string& text) {
  return refusal([&] { cluster_from_json(text, "c.json"); });
}

const ClusterSpec kSpec{.workers = {"a:2220", "b:2220", "c:2220"}, .servers = {"a:2230", "[fe80::1]:2230"}};

TEST(ClusterSpec, TheOrderOfTheListsIsTheTaskIndexAndWorkersRankFirst) {
  const ClusterSpec spec = cluster_from_lists("a:2220,b:2220,c:2220", "a:2230,[fe80::1]:2230");
  EXPECT_EQ(spec, kSpec);
  EXPECT_EQ(spec.size(), 5);
  for (int rank = 0; rank < spec.size(); ++rank) EXPECT_EQ(spec.rank_of(spec.place_of(rank)), rank);
  EXPECT_EQ(spec.rank_of({.job = "ps", .index = 1}), 4);
  EXPECT_EQ(spec.name_of(2), "worker 2");
  EXPECT_EQ(spec.name_of(3), "ps 0");
  EXPECT_EQ(spec.address_of({.job = "ps", .index = 1}), "[fe80::1]:2230");
}

TEST(ClusterSpec, ServersMayBeMissing) { EXPECT_EQ(cluster_from_lists("a:1", "").size(), 1); }

TEST(ClusterSpec, TravelsAsJson) {
  const ClusterDescription description = cluster_from_json(to_json_text(kSpec), "environment");
  EXPECT_EQ(description.spec, kSpec);
  EXPECT_FALSE(description.task);
}

TEST(ClusterSpec, ReadsTheFormOfTfConfig) {
  const trireme::testkit::TemporaryFolder folder;
  std::ofstream(folder / "tf.json") << R"({"cluster": {"worker": ["a:1", "b:1"], "ps": ["a:2"]},
                                           "task": {"type": "ps", "index": 0}, "environment": "cloud"})";
  const ClusterDescription description = read_cluster_file(folder / "tf.json");
  EXPECT_EQ(description.spec, (ClusterSpec{.workers = {"a:1", "b:1"}, .servers = {"a:2"}}));
  EXPECT_EQ(description.task, (TaskPlace{.job = "ps", .index = 0}));
}

TEST(ClusterSpec, BadAddressesAreNamedWithTheirList) {
  EXPECT_EQ(lists_refusal("a:2220,b"), "--worker-hosts: 'b' has no port; write host:port, as in node7:2220");
  EXPECT_EQ(lists_refusal("a:2220", "[::1]"), "--ps-hosts: '[::1]' has no port; write host:port, as in node7:2220");
  EXPECT_EQ(lists_refusal("a:2220,,b:2220"), "--worker-hosts: '' has no port; write host:port, as in node7:2220");
  EXPECT_EQ(lists_refusal("a:2220,"), "--worker-hosts: '' has no port; write host:port, as in node7:2220");
  for (const std::string port : {"0", "65536", "99999999999", "x", "22x", "", "-1"}) {
    EXPECT_EQ(lists_refusal("a:" + port),
              "--worker-hosts: 'a:" + port + "': the port must be a number from 1 to 65535");
  }
  for (const std::string address : {":2220", "a b:2220", "http//a:2220", "ä:2220"}) {
    EXPECT_EQ(lists_refusal(address),
              "--worker-hosts: '" + address + "' is not an address; write host:port, as in node7:2220");
  }
  EXPECT_EQ(lists_refusal("::1:2220"),
            "--worker-hosts: '::1:2220': write an IPv6 address in brackets, as in [::1]:2220");
  EXPECT_EQ(lists_refusal("[node7]:2220"),
            "--worker-hosts: '[node7]:2220': there is no IPv6 address between the brackets");
  EXPECT_NE(lists_refusal("0.0.0.0:2220").find("matches every machine"), std::string::npos);
}

TEST(ClusterSpec, AnAddressBelongsToOneTask) {
  EXPECT_EQ(lists_refusal("a:1,b:1,A:1"),
            "--worker-hosts: A:1 is listed twice, for worker 0 and for worker 2; each task needs its own address");
  EXPECT_EQ(lists_refusal("a:1,b:1", "b:1"),
            "--ps-hosts: b:1 is listed twice, for worker 1 and for ps 0; each task needs its own address");
}

TEST(ClusterSpec, NeedsAWorker) {
  EXPECT_EQ(lists_refusal("", "a:1"), "--worker-hosts: a cluster needs at least one worker");
  EXPECT_EQ(json_refusal(R"({"ps": ["a:1"]})"), "c.json: \"worker\": a cluster needs at least one worker");
}

TEST(ClusterSpec, BadFilesAreRefusedWithTheRightForm) {
  EXPECT_EQ(json_refusal("{"), "c.json: not valid JSON");
  EXPECT_NE(json_refusal("[]").find("must be a JSON object of jobs"), std::string::npos);
  EXPECT_NE(json_refusal(R"({"worker": "a:1"})").find("c.json: \"worker\": must be a list"), std::string::npos);
  EXPECT_NE(json_refusal(R"({"worker": ["a:1", 2]})").find("must be a list of strings"), std::string::npos);
  EXPECT_EQ(json_refusal(R"({"worker": ["a:1"], "evaluator": ["b:1"]})"),
            "c.json: unknown job 'evaluator'; the jobs are worker and ps");
  EXPECT_EQ(json_refusal(R"({"cluster": {"chief": ["a:1"], "worker": ["b:1"]}})"),
            "c.json: \"cluster\": there is no job 'chief': worker 0 acts as the chief; list it as the first worker");
  EXPECT_NE(json_refusal(R"({"cluster": {"worker": ["b:1"]}, "task": {"index": 1}})").find("\"type\": \"worker\""),
            std::string::npos);
  EXPECT_EQ(json_refusal(R"({"cluster": {"worker": ["b:1"]}, "task": {"type": "worker", "index": 1}})"),
            "c.json: \"task\" 1: there is only worker 0");
  EXPECT_EQ(refusal([] { read_cluster_file("/no/such/file"); }),
            "--cluster /no/such/file: cannot read this file, or it is empty");
  EXPECT_EQ(refusal([] { read_cluster_file("/tmp"); }), "--cluster /tmp: cannot read this file, or it is empty");
}

TEST(ClusterSpec, APlaceThatIsNotThereIsRefusedWithThoseThatAre) {
  const auto place_refusal = [](const ClusterSpec& spec, const std::string& job, int index) {
    return refusal([&] { check_place(spec, {.job = job, .index = index}, "--job-name", "--task-index"); });
  };
  EXPECT_EQ(place_refusal(kSpec, "worker", 4), "--task-index 4: there are workers 0 to 2");
  EXPECT_EQ(place_refusal(kSpec, "ps", -1), "--task-index -1: there are servers 0 to 1");
  EXPECT_EQ(place_refusal(kSpec, "server", 0), "--job-name: unknown job 'server'; the jobs are worker and ps");
  EXPECT_EQ(place_refusal({.workers = {"a:1"}, .servers = {}}, "ps", 0),
            "--job-name ps: there are no servers in this cluster");
  EXPECT_NE(place_refusal(kSpec, "master", 0).find("no job 'master'"), std::string::npos);
  check_place(kSpec, {.job = "ps", .index = 1}, "--job-name", "--task-index");
}

TEST(ClusterSpec, ATaskListensOnItsOwnMachine) {
  // 192.0.2.0/24 is set aside for documentation: no machine has it.
  const ClusterSpec spec{.workers = {"localhost:1", "192.0.2.7:1", "no-such-host.invalid:1", "127.8.9.10:1"},
                         .servers = {}};
  check_is_local(spec, {.index = 0});
  check_is_local(spec, {.index = 3});
  const std::string elsewhere = refusal([&] { check_is_local(spec, {.index = 1}); });
  EXPECT_TRUE(elsewhere.starts_with("worker 1 is to listen on 192.0.2.7:1, but this machine has ")) << elsewhere;
  EXPECT_TRUE(elsewhere.ends_with("; is --task-index right?")) << elsewhere;
  EXPECT_NE(elsewhere.find("127.0.0.1"), std::string::npos) << elsewhere;
  const std::string unknown = refusal([&] { check_is_local(spec, {.index = 2}); });
  EXPECT_NE(unknown.find("the name no-such-host.invalid is not known on this machine"), std::string::npos) << unknown;
}

}  // namespace
}  // namespace trireme::comm

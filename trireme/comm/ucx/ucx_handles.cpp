#include "trireme/comm/ucx/ucx_handles.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace trireme::comm::ucx {

UcxContext::UcxContext(bool is_one_node) {
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED | UCP_PARAM_FIELD_NAME;
  params.features = UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP;
  params.mt_workers_shared = 1;  // several threads use communicators, each with a worker
  params.name = "trireme";
  ucp_config_t* config = nullptr;
  check(ucp_config_read(nullptr, nullptr, &config), "reading the settings of UCX");
  ucs_status_t status = UCS_OK;
  if (is_one_node && std::getenv("UCX_TLS") == nullptr) status = ucp_config_modify(config, "TLS", "^tcp");
  if (status == UCS_OK) status = ucp_init(&params, config, &context_);
  ucp_config_release(config);
  check(status, "starting UCX");
}

UcxContext::~UcxContext() { ucp_cleanup(context_); }

UcxWorker::UcxWorker(const UcxContext& context) {
  ucp_worker_params_t params{};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  check(ucp_worker_create(context.handle(), &params, &worker_), "making a UCX worker");
  const ucs_status_t status = ucp_worker_get_efd(worker_, &event_descriptor_);
  if (status == UCS_OK) return;
  ucp_worker_destroy(worker_);
  check(status, "asking for the event descriptor of a UCX worker");
}

UcxWorker::~UcxWorker() { ucp_worker_destroy(worker_); }

std::string UcxWorker::address() const {
  ucp_address_t* address = nullptr;
  std::size_t bytes = 0;
  check(ucp_worker_get_address(worker_, &address, &bytes), "asking for the address of a UCX worker");
  std::string text(reinterpret_cast<const char*>(address), bytes);
  ucp_worker_release_address(worker_, address);
  return text;
}

// UCX 1.13 only prints them, as in "#  lane[0]:  3:sysv/memory.0 md[2]  -> md[2]/sysv/sysdev[255] am am_bw#0".
std::vector<std::string> transports_of(ucp_ep_h endpoint) {
  char* text = nullptr;
  std::size_t bytes = 0;
  std::FILE* stream = open_memstream(&text, &bytes);
  if (stream == nullptr) return {};
  ucp_ep_print_info(endpoint, stream);
  std::fclose(stream);
  std::istringstream lines(std::string(text, bytes));
  std::free(text);

  std::vector<std::string> transports;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t lane = line.find("lane[");
    const std::size_t number = lane == std::string::npos ? lane : line.find(':', lane);
    const std::size_t name = number == std::string::npos ? number : line.find(':', number + 1);
    const std::size_t end = name == std::string::npos ? name : line.find('/', name);
    if (end == std::string::npos) continue;
    const std::string transport = line.substr(name + 1, end - name - 1);
    if (std::find(transports.begin(), transports.end(), transport) == transports.end()) transports.push_back(transport);
  }
  return transports;
}

}  // namespace trireme::comm::ucx

// What this process sends over sockets, byte by byte, as somebody who listens to the network would have it. It takes
// the place of the C library's sendmsg(), by which gRPC sends, and calls it.
#pragma once

#include <map>
#include <string>

namespace trireme::comm::testkit {

void start_wire_tap();
// Since then, by file descriptor.
std::map<int, std::string> wire_tap();

}  // namespace trireme::comm::testkit

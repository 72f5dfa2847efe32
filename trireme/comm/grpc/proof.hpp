// How two tasks prove to each other that they know the job's secret without saying it: each shows HMAC-SHA-256, keyed
// by the secret, of what both have just said. Used by the two sides of a call, Authenticator and OutgoingCall.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace trireme::comm::rpc {

inline constexpr std::size_t kNonceBytes = 32;
inline constexpr std::size_t kProofBytes = 32;

std::string random_bytes(std::size_t count);

// Of all parts, each with its length, so that what belongs to one cannot be taken for another's.
std::string keyed_hash(std::string_view key, std::initializer_list<std::string_view> parts);

// The caller's claim (wire::Claim, as sent) and the challenge that the called task has answered it with: neither side's
// proof can be taken for the other's, for that of another call, or of another connection.
std::string caller_proof(std::string_view secret, std::string_view claim, std::string_view challenge);
std::string answer_proof(std::string_view secret, std::string_view claim, std::string_view challenge);

// In a time that does not depend on where they differ.
bool is_equal(std::string_view given, std::string_view expected);

}  // namespace trireme::comm::rpc

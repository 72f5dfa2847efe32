// Lets two tasks prove to each other that they know the job's secret without revealing it: each sends HMAC-SHA-256,
// keyed by the secret, of what both have just said. Used by both sides of a call, Authenticator and OutgoingCall.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace trireme::comm::rpc {

inline constexpr std::size_t kNonceBytes = 32;
inline constexpr std::size_t kProofBytes = 32;

std::string random_bytes(std::size_t count);

// Hashes each part with its length, so that parts cannot be confused.
std::string keyed_hash(std::string_view key, std::initializer_list<std::string_view> parts);

// Over claim (wire::Claim as sent) and challenge: valid for one side, one call and one connection only.
std::string caller_proof(std::string_view secret, std::string_view claim, std::string_view challenge);
std::string answer_proof(std::string_view secret, std::string_view claim, std::string_view challenge);

bool is_equal(std::string_view given, std::string_view expected);  // constant time

}  // namespace trireme::comm::rpc

// A finding in words: a sentence made of pieces, so that a renderer can set off its numbers.
#pragma once

#include <string>
#include <vector>

#include "trireme/report/document.hpp"

namespace trireme::report {

enum class Emphasis : std::uint8_t { none, strong, faint };

struct Sentence {
  struct Piece {
    std::string text;
    Emphasis emphasis;
  };
  std::vector<Piece> pieces;

  // Texts are sentences: NOLINTBEGIN(google-explicit-constructor)
  Sentence(std::string text, Emphasis emphasis = Emphasis::none) : pieces{{std::move(text), emphasis}} {}
  Sentence(const char* text) : Sentence(std::string(text)) {}
  // NOLINTEND(google-explicit-constructor)
  std::string plain() const;
};
Sentence operator+(Sentence first, const Sentence& second);

Sentence sentence_of(const Finding& finding);
std::string text_of(const Finding& finding);  // plain

}  // namespace trireme::report

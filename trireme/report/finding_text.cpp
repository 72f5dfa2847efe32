#include "trireme/report/finding_text.hpp"

#include <fmt/format.h>

#include "trireme/base/units.hpp"

namespace trireme::report {
namespace {

using perf::Verdict;

// Ratios, speeds and shares stand out of the sentence, p values stand back.
Sentence strong(std::string text) { return {std::move(text), Emphasis::strong}; }
Sentence faint(std::string text) { return {std::move(text), Emphasis::faint}; }

std::string times_text(double ratio) { return fmt::format("{:.2f}x", ratio); }
Sentence times(const Finding& finding) { return strong(times_text(*finding.ratio)); }

std::string p_text(const Finding& finding) {
  return perf::p_text(perf::Comparison{.p = *finding.p, .verdict = *finding.verdict});
}
Sentence p_value(const Finding& finding) { return faint(fmt::format("({})", p_text(finding))); }

// "(p = 0.003; 95 %: 1.10 to 1.14)"
Sentence p_and_interval(const Finding& finding, int digits) {
  return faint(fmt::format("({}; {}: {:.{}f} to {:.{}f})", p_text(finding), kind_text(*finding.interval),
                           finding.interval->low, digits, finding.interval->high, digits));
}

std::string too_few_text(const claim::RunCounts& runs) {
  return fmt::format("not enough runs to tell ({} and {}{}; {} each would be enough)", runs.first, runs.second,
                     runs.has_repeats ? ", counting repeats of a process as one run" : "", runs.needed);
}

// "2 workers beat", "1 worker beats", "batch 32 beats"
const char* beats(const std::string& subject) {
  const std::size_t digits = subject.find_first_not_of("0123456789");
  const bool is_plural = digits > 0 && digits != std::string::npos && subject.substr(0, digits) != "1";
  return is_plural ? "beat" : "beats";
}

// Capitalizes words, but not names such as resnet20.
Sentence capitalised(Sentence sentence) {
  std::string& text = sentence.pieces.front().text;
  const std::size_t word = text.find_first_not_of("abcdefghijklmnopqrstuvwxyz");
  if (word != std::string::npos && word > 0 && (text[word] == ' ' || text[word] == ','))
    text[0] = static_cast<char>(text[0] - 'a' + 'A');
  return sentence;
}

Sentence claim_sentence(const Finding& finding, const claim::Fastest& claim) {
  const std::string of = fmt::format("of {} configurations: ", claim.configurations);
  const Sentence lead = strong(number_text(claim.images_per_second) + " images/s") + ", " + times(finding);
  if (finding.verdict == Verdict::larger) {
    return capitalised(finding.subjects[0] + " is the fastest " + of + lead + " the next, " + finding.subjects[1] +
                       " " + p_value(finding) + ".");
  }
  const Sentence why = finding.verdict == Verdict::too_few_runs ? Sentence(too_few_text(claim.runs))
                                                                : "the lead is not supported " + p_value(finding);
  return capitalised(finding.subjects[0] + " has the highest median " + of + lead + " that of " + finding.subjects[1] +
                     "; " + why + ".");
}

// "A beats B by 1.12x (p = 0.003; 95 %: 1.10 to 1.14)", either way round, or that this cannot be said.
Sentence claim_sentence(const Finding& finding, const claim::Pair& claim) {
  const std::string &first = finding.subjects[0], &second = finding.subjects[1];
  Sentence where = claim.where;
  if (claim.efficiency) {
    where = where + ": " + strong(fmt::format("{:.0f} % of ideal", 100 * claim.efficiency->y));
    if (const auto& spread = claim.efficiency->spread)
      where = where + fmt::format(" ({:.0f} to {:.0f} %)", 100 * spread->low, 100 * spread->high);
  }
  switch (*finding.verdict) {
    case Verdict::larger:
      return capitalised(fmt::format("{} {} {} by ", first, beats(first), second) + times(finding) + " " +
                         p_and_interval(finding, 2) + where + ".");
    case Verdict::smaller:
      return capitalised(first + " reaches only " + times(finding) + " of the speed of " + second + " " +
                         p_and_interval(finding, 2) + where + ".");
    case Verdict::no_difference_shown:
      return fmt::format("No difference between {} and {} could be shown (", first, second) + times(finding) +
             fmt::format("; {})", p_text(finding)) + where + ".";
    case Verdict::too_few_runs:
      break;
  }
  return capitalised(fmt::format("{} against {}: {}", first, second, too_few_text(claim.runs)) + where +
                     "; the ratio of the medians is " + times(finding) + ".");
}

// Over all settings, though each alone may have too few runs: "A beats B overall: 1.87x over 6 settings ...".
Sentence claim_sentence(const Finding& finding, const claim::Overall& claim) {
  const std::string &first = finding.subjects[0], &second = finding.subjects[1];
  const std::string claimed =
      finding.verdict == Verdict::larger ? fmt::format("{} {} {} overall", first, beats(first), second)
      : finding.verdict == Verdict::smaller
          ? fmt::format("{} is behind {} overall", first, second)
          : fmt::format("No overall difference between {} and {} could be shown", first, second);
  return capitalised(claimed + ": " + times(finding) + fmt::format(" over {} settings, from ", claim.settings) +
                     strong(times_text(finding.interval->low)) + " to " + strong(times_text(finding.interval->high)) +
                     " " + p_value(finding) + ".");
}

Sentence claim_sentence(const Finding& finding, const claim::Choice& claim) {
  const std::string& option = finding.subjects[0];
  const Sentence claimed = finding.verdict == Verdict::larger
                               ? "The choice of " + option + " makes a difference " + p_value(finding)
                           : finding.verdict == Verdict::no_difference_shown
                               ? "No effect of the choice of " + option + " could be shown " + p_value(finding)
                               : "Not enough runs to tell whether the choice of " + Sentence(option) + " matters";
  return claimed + ": the median of " + finding.subjects[1] + " is " + times(finding) + " that of " +
         finding.subjects[2] + claim.where + ".";
}

Sentence claim_sentence(const Finding& finding, const claim::Input& claim) {
  const Sentence claimed =
      finding.verdict == Verdict::smaller ? "Input costs speed " + p_value(finding)
      : finding.verdict == Verdict::no_difference_shown
          ? "No cost of input could be shown " + p_value(finding)
          : Sentence(fmt::format("Not enough runs to tell whether input costs speed ({})", claim.runs));
  const std::string of =
      claim.configurations == 1 ? "" : fmt::format(", the most of {} configurations", claim.configurations);
  return claimed + ": a median of " + strong(fmt::format("{:.1f} % of the speed", claim.percent)) + " with " +
         finding.subjects[0] + of + ".";
}

Sentence claim_sentence(const Finding& finding, const claim::StepTime& claim) {
  std::string shares;
  for (const auto& [part, percent] : claim.percent)
    shares += fmt::format("{}{:.0f} % {}", shares.empty() ? "" : ", ", percent, part);
  return fmt::format("A step of the fastest configuration of {} ({}) consists of {}.", finding.subjects[0],
                     finding.subjects[1], shares);
}

Sentence claim_sentence(const Finding& finding, const claim::Failures& claim) {
  return fmt::format("{} of {} runs of '{}' failed and are not in any figure; the first: {} ({}).", claim.failed,
                     claim.runs, finding.subjects[0], finding.subjects[1], finding.subjects[2]);
}

// "118.55 s of training", and for a resumed run this run's part of it.
std::string training_time(const claim::Training& claim) {
  if (!claim.resumed) return format_seconds(*claim.seconds) + " of training";
  const std::string here = format_seconds(*claim.seconds_here);
  const std::string where = fmt::format("resumed at step {} (epoch {:.2f})", claim.resumed->step, claim.resumed->epoch);
  if (!claim.seconds) return fmt::format("{} of training since it was {}", here, where);
  return fmt::format("{} of training ({} of it since it was {})", format_seconds(*claim.seconds), here, where);
}

Sentence claim_sentence(const Finding& finding, const claim::Training& claim) {
  return fmt::format("{}: loss {} after {:g} epoch{} and {}{}.", finding.subjects[0], number_text(claim.loss),
                     claim.epochs, claim.epochs == 1 ? "" : "s", training_time(claim),
                     claim.top1 ? fmt::format("; top-1 {:.2f} %", 100 * *claim.top1) : "");
}

Sentence claim_sentence(const Finding& finding, const claim::Bandwidth& claim) {
  return fmt::format("{}: at most {} GB/s ({}, messages of {}).", finding.subjects[0],
                     number_text(claim.gigabytes_per_second), finding.subjects[1], format_bytes(claim.bytes));
}

// A baseline's changes are small.
Sentence fine_times(const Finding& finding) { return strong(fmt::format("{:.3f}x", *finding.ratio)); }

Sentence claim_sentence(const Finding& finding, const claim::Change& /*claim*/) {
  const char* verdict = finding.verdict == Verdict::larger ? " got faster: " : " got slower: ";
  return finding.subjects[0] + verdict + fine_times(finding) + " " + p_and_interval(finding, 3) + ".";
}

Sentence claim_sentence(const Finding& finding, const claim::Changes& claim) {
  const char* claimed = finding.verdict == Verdict::larger    ? "Faster overall: "
                        : finding.verdict == Verdict::smaller ? "Slower overall: "
                                                              : "No overall change could be shown: ";
  return claimed + fine_times(finding) + fmt::format(" over {} configurations ", claim.configurations) +
         p_value(finding) + ".";
}

Sentence claim_sentence(const Finding& finding, const claim::Unchanged& claim) {
  const std::string why = finding.verdict == Verdict::no_difference_shown
                              ? "no difference could be shown"
                              : fmt::format("not enough runs to tell; this many configurations need {} on each side",
                                            perf::runs_needed(claim.configurations));
  return fmt::format("{} of {}: {}.", claim.count, claim.configurations, why);
}

Sentence claim_sentence(const Finding& finding, const claim::Broken& /*claim*/) {
  return "Broken: " + finding.subjects[0] + ".";
}

}  // namespace

Sentence operator+(Sentence first, const Sentence& second) {
  for (const Sentence::Piece& piece : second.pieces) {
    if (piece.emphasis == Emphasis::none && first.pieces.back().emphasis == Emphasis::none) {
      first.pieces.back().text += piece.text;
    } else {
      first.pieces.push_back(piece);
    }
  }
  return first;
}

std::string Sentence::plain() const {
  std::string text;
  for (const Piece& piece : pieces) text += piece.text;
  return text;
}

Sentence sentence_of(const Finding& finding) {
  return std::visit([&](const auto& claim) { return claim_sentence(finding, claim); }, finding.claim);
}

std::string text_of(const Finding& finding) { return sentence_of(finding).plain(); }

}  // namespace trireme::report

// Mistakes on the command line: each is answered with what is wrong, what is allowed and what to do, never in the words
// of the parser.
#include <gtest/gtest.h>

#include "tests/cli/refusal.hpp"

namespace trireme::testkit {
namespace {

TEST(Mistakes, UnknownCommand) {
  expect_refused({"fly"},
                 {"unknown command 'fly'. The commands are bench, train, eval, sweep, tune, compare, report, models, "
                  "data, export, net, doctor, launch",
                  "see trireme --help"});
  expect_refused({"benhc"}, {"unknown command 'benhc'; did you mean 'bench'?"});
  expect_refused({"data", "inspct", "x"}, {"unknown command 'inspct' of data; did you mean 'inspect'?"});
  expect_refused({"launch", "--workers", "2", "--", "benhc"}, {"unknown command 'benhc'; did you mean 'bench'?"});
}

TEST(Mistakes, UnknownOption) {
  expect_refused({"bench", "--bach-size", "4"},
                 {"unknown option '--bach-size'; did you mean '--batch-size'?", "See trireme bench --help"});
  expect_refused({"bench", "--modle=lenet"}, {"unknown option '--modle'; did you mean '--model'?"});
  expect_refused({"bench", "-batch-size", "4"}, {"'-batch-size'; did you mean '--batch-size'?"});
  expect_refused({"models", "--colour", "red"}, {"unknown option '--colour'. See trireme models --help"});
  expect_refused({"--verison"}, {"unknown option '--verison'; did you mean '--version'?", "See trireme --help"});
  expect_refused({"data", "make", "--otu", "x"}, {"did you mean '--out'?", "See trireme data make --help"});
  expect_refused({"launch", "--workers", "2", "--", "bench", "--modle", "lenet"}, {"did you mean '--model'?"});
}

TEST(Mistakes, AnOptionOfAnotherCommand) {
  expect_refused({"bench", "--epochs", "3"}, {"unknown option '--epochs'; trireme train has it"});
  expect_refused({"doctor", "--model", "lenet"}, {"unknown option '--model'; ", "trireme bench, ", " have it"});
  expect_refused({"bench", "--workers", "2"}, {"it belongs to launch, as in: trireme launch --workers 2 -- bench"});
  expect_refused({"launch", "--workers", "2", "bench", "--model", "lenet"},
                 {"unknown option '--model' of launch", "go after --, as in: trireme launch --workers 2 -- bench"});
}

TEST(Mistakes, UnknownArgument) {
  expect_refused({"doctor", "now"}, {"unknown argument 'now'; trireme doctor takes options only"});
  expect_refused({"bench", "resnet50"}, {"unknown argument 'resnet50'; did you mean '--model resnet50'?"});
  expect_refused({"sweep", "one", "two"}, {"unknown argument 'two'; trireme sweep takes one PLAN"});
}

TEST(Mistakes, NotANumber) {
  expect_refused({"bench", "--batch-size", "many"}, {"--batch-size many: must be a whole number; see trireme bench"});
  expect_refused({"bench", "--batch-size", "1.5"}, {"--batch-size 1.5: must be a whole number"});
  expect_refused({"bench", "--batch-size", "4k"}, {"--batch-size 4k: must be a whole number"});
  expect_refused({"bench", "--batch-size", "99999999999999999999"}, {"the number is too large"});
  expect_refused({"bench", "--batch-size", "010"}, {"--batch-size 010: must be a whole number, without a 0 in front"});
  expect_refused({"bench", "--seed", "-1"}, {"--seed -1: must be a whole number, 0 or more"});
  expect_refused({"bench", "--momentum", "much"}, {"--momentum much: must be a number"});
  expect_refused({"bench", "--num-batches", "-3"}, {"--num-batches -3: must be "});
  expect_refused({"tune", "--batches", "4,x"}, {"--batches 4,x: each must be a whole number"});
  expect_refused({"bench", "--bind=maybe"}, {"--bind maybe: must be true or false"});
  expect_refused({"bench", "--profile=maybe"}, {"--profile maybe: must be true or false"});
  expect_refused({"net", "--local", "--max-bytes", "much"}, {"--max-bytes much: must be a number of bytes"});
  expect_refused({"net", "--local", "--max-bytes", "-5"}, {"--max-bytes -5: must be above --min-bytes"});
}

TEST(Mistakes, OutOfRange) {
  expect_refused({"data", "make", "--out", "x", "--threads", "0"},
                 {"--threads 0: must be a whole number from 1 to 1024; see trireme data make --help"});
  expect_refused({"data", "make", "--out", "x", "--quality", "best"},
                 {"--quality best: must be a whole number from 1 to 100"});
  expect_refused({"models", "--num-classes", "1"}, {"--num-classes 1: must be a whole number from 2 to "});
  expect_refused({"report", "x", "--format", "pdf"}, {"--format pdf: must be one of html, "});
}

TEST(Mistakes, GivenTwice) {
  expect_refused({"bench", "--batch-size", "4", "--batch-size=8"}, {"--batch-size is given twice: 4 and 8"});
  expect_refused({"bench", "--model=a", "--model=b", "--model=c"}, {"--model is given 3 times: a and b and c"});
}

TEST(Mistakes, NoValue) {
  expect_refused({"bench", "--batch-size"}, {"--batch-size has no value; it must be a whole number"});
  expect_refused({"bench", "--data-dir", "--batch-size", "4"},
                 {"--data-dir has no value: it is followed by --batch-size"});
  expect_refused({"bench", "--data-dir=", "x"}, {"--data-dir= has no value"});
  expect_refused({"bench", "--data-dir", ""}, {"--data-dir is empty; give a value, or leave it out"});
  expect_refused({"bench", "--batch-size", ""}, {"--batch-size is empty; give a value, or leave it out"});
  expect_refused({"bench", "--config"}, {"--config has no value"});
}

TEST(Mistakes, SomethingIsMissing) {
  expect_refused({"data", "make"}, {"--out is missing: output folder", "see trireme data make --help"});
  expect_refused({"data", "convert", "--out", "x", "--format", "idx"}, {"FROM is missing: folder of the data set"});
  expect_refused({"data"}, {"data: missing command; use make, convert, inspect or verify."});
  expect_refused({"models", "--plan"}, {"--plan has no effect without --model"});
}

TEST(Mistakes, WhatDoesNotGoTogether) {
  expect_refused({"models", "--model", "lenet", "--workers", "2"}, {"--workers has no effect without --plan"});
  expect_refused({"report", "--trace", "t", "--out", "x"}, {"--out and --trace cannot be used together"});
}

TEST(Mistakes, AVariableIsNamedByItsName) {
  expect_refused({"bench"}, {"TRIREME_NUM_INTRA_THREADS=all: must be a whole number"},
                 {.environment = {"TRIREME_NUM_INTRA_THREADS=all"}});
}

TEST(Mistakes, AReadyMadePlanIsMisspelled) {
  expect_refused({"sweep", "threads-and-bacth"}, {"did you mean 'threads-and-batch'?", "no such file"});
}

}  // namespace
}  // namespace trireme::testkit

// Run records made by code, as `bench --record` and `sweep` write them. Used by the tests of reports.
#pragma once

#include <string>
#include <vector>

#include "trireme/report/record_set.hpp"

namespace trireme::report::testkit {

class RecordBuilder {
 public:
  RecordBuilder();

  RecordBuilder& config(const std::string& name, const Json& value);  // as records have it: batch_size
  RecordBuilder& given(const Json& options);                          // names, as the command line has them
  RecordBuilder& speed(double images_per_second, std::vector<double> per_repeat = {});
  RecordBuilder& host(const std::string& name);
  RecordBuilder& gpu(const std::string& name);                    // that it ran on
  RecordBuilder& cluster(const std::vector<std::string>& hosts);  // a worker on each
  RecordBuilder& no_machine();
  RecordBuilder& commit(const std::string& name);
  RecordBuilder& version(const std::string& name);
  // A run of a study; `cell` has options as the command line has them.
  RecordBuilder& study(const std::string& name, const Json& cell, int repeat = 0, const std::string& kind = "");
  RecordBuilder& framework(const std::string& name);
  RecordBuilder& breakdown(std::vector<record::Breakdown> ranks);
  RecordBuilder& io_overhead(std::vector<double> percent);
  RecordBuilder& error(const std::string& message);

  const Json& json() const { return json_; }
  Run run() const { return read_run(json_, "made.json"); }

 private:
  Json json_;
};

// Runs of one cell, one for each speed.
void add_runs(RecordSet& records, const RecordBuilder& cell, const std::vector<double>& speeds);

// Five speeds about this one, far from those about a figure some percent away.
std::vector<double> about(double speed);

// Training and network records with a few points each.
Json training_record();
Json network_record();
Training training(const std::string& file, const Json& record = training_record());
Network network(const std::string& file);

void write_file(const std::string& path, const std::string& text);

}  // namespace trireme::report::testkit

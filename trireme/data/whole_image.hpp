// Measures or decodes whole images, for `trireme data`; errors name the sample. Pipelines decode less (preprocess.hpp).
#pragma once

#include <memory>
#include <vector>

#include "trireme/data/dataset.hpp"
#include "trireme/data/jpeg.hpp"

namespace trireme::data {

// For one thread.
class WholeImages {
 public:
  explicit WholeImages(const Dataset& dataset) : dataset_(dataset) {}

  // Sets a JPEG sample's height, width and channels from its header; pixels have them already. Error(failed) names the
  // sample if it is broken, Error(unavailable) without libjpeg.
  void measure(std::int64_t index, Sample& sample);
  void decode(std::int64_t index, Sample& sample, int channels);  // to pixels; gray pixels stay gray

 private:
  Window open(std::int64_t index, const Sample& sample);

  const Dataset& dataset_;
  std::unique_ptr<JpegDecoder> decoder_;  // created for the first JPEG image
  std::vector<std::byte> copy_;
};

}  // namespace trireme::data

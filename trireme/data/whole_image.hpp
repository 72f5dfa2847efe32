// Whole images of samples, measured or decoded, with errors that name the sample. For `trireme data`; a pipeline
// decodes no more than it needs (preprocess.hpp).
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

  // Sets height, width and channels of a sample from its JPEG header; pixels have them. Error(failed) that names the
  // sample where it is broken, Error(unavailable) where this build has no libjpeg.
  void measure(std::int64_t index, Sample& sample);
  // Makes pixels of it, of one channel or three; grey pixels are not made colour.
  void decode(std::int64_t index, Sample& sample, int channels);

 private:
  Window open(std::int64_t index, const Sample& sample);

  const Dataset& dataset_;
  std::unique_ptr<JpegDecoder> decoder_;  // made when a JPEG image comes
  std::vector<std::byte> copy_;
};

}  // namespace trireme::data

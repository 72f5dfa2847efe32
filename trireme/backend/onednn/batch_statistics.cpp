#include "trireme/backend/onednn/batch_statistics.hpp"

namespace trireme::onednn {
namespace {

struct Accumulated {
  double count = 0, mean = 0, squares = 0;

  void merge(double other_count, double other_mean, double other_squares) {
    const double total = count + other_count;
    const double delta = other_mean - mean;
    mean += delta * other_count / total;
    squares += other_squares + delta * delta * count * other_count / total;
    count = total;
  }
};

double* lane_partials(const Strips& strips, std::int64_t index, double* partials) {
  return partials + 2 * index * strips.group_width();
}

}  // namespace

std::int64_t partial_count(const Strips& strips) { return 2 * strips.count() * strips.group_width(); }

template <typename Element>
void strip_moments(const Strips& strips, std::int64_t index, const Element* x, double* partials) {
  const Strip strip = strips[index];
  Accumulated lanes[kPanelWidth];
  for_each_panel(strip, [&](const Panel& panel) {
    alignas(64) float sums[kPanelWidth], centre[kPanelWidth], deviations[kPanelWidth], squares[kPanelWidth];
    sum_columns(panel, x, sums);
    double sum[kPanelWidth] = {}, deviation[kPanelWidth] = {}, square[kPanelWidth] = {};
    fold_columns(panel, sums, sum);
    const auto count = static_cast<double>(panel.rows * panel.width / panel.lanes);
    float means[kPanelWidth];
    for (std::int64_t lane = 0; lane < strip.width; ++lane) means[lane] = static_cast<float>(sum[lane] / count);
    for (std::int64_t j = 0; j < panel.width; j += panel.lanes)
      std::copy_n(means, std::min(panel.lanes, panel.width - j), centre + j);
    centred_sums(panel, x, centre, deviations, squares);
    fold_columns(panel, deviations, deviation);
    fold_columns(panel, squares, square);
    for (std::int64_t lane = 0; lane < strip.width; ++lane) {
      // The center is a rounded mean; the deviations hold its error.
      const double off = deviation[lane] / count;
      lanes[lane].merge(count, means[lane] + off, square[lane] - off * deviation[lane]);
    }
  });
  double* result = lane_partials(strips, index, partials);
  for (std::int64_t lane = 0; lane < strip.width; ++lane) {
    result[2 * lane] = lanes[lane].mean;
    result[2 * lane + 1] = lanes[lane].squares;
  }
}

Moments merged_moments(const Strips& strips, std::int64_t channel, const double* partials) {
  const std::int64_t group = channel / strips.group_width();
  const std::int64_t lane = channel % strips.group_width();
  Accumulated all;
  for (std::int64_t i = group * strips.per_group(); i < (group + 1) * strips.per_group(); ++i) {
    const double* partial = partials + 2 * (i * strips.group_width() + lane);
    all.merge(static_cast<double>(strips.rows(i)), partial[0], partial[1]);
  }
  return {all.mean, std::max(all.squares / all.count, 0.0)};
}

template <typename Element>
void strip_gradient_sums(const Strips& strips, std::int64_t index, const float* mean,
                         const GradientOperands<Element>& operands, double* partials) {
  const Strip strip = strips[index];
  alignas(64) float means[kPanelWidth];
  spread_lanes(strip, mean, means);
  double diff[kPanelWidth] = {}, product[kPanelWidth] = {};
  for_each_panel(strip, [&](const Panel& panel) {
    alignas(64) float diffs[kPanelWidth], products[kPanelWidth];
    gradient_sums(panel, means, operands, diffs, products);
    fold_columns(panel, diffs, diff);
    fold_columns(panel, products, product);
  });
  double* result = lane_partials(strips, index, partials);
  for (std::int64_t lane = 0; lane < strip.width; ++lane) {
    result[2 * lane] = diff[lane];
    result[2 * lane + 1] = product[lane];
  }
}

template <typename Element>
void strip_sums(const Strips& strips, std::int64_t index, const Element* x, double* partials) {
  const Strip strip = strips[index];
  double sum[kPanelWidth] = {};
  for_each_panel(strip, [&](const Panel& panel) {
    alignas(64) float sums[kPanelWidth];
    sum_columns(panel, x, sums);
    fold_columns(panel, sums, sum);
  });
  double* result = lane_partials(strips, index, partials);
  for (std::int64_t lane = 0; lane < strip.width; ++lane) {
    result[2 * lane] = sum[lane];
    result[2 * lane + 1] = 0;
  }
}

Sums added_sums(const Strips& strips, std::int64_t channel, const double* partials) {
  const std::int64_t group = channel / strips.group_width();
  const std::int64_t lane = channel % strips.group_width();
  Sums sums;
  for (std::int64_t i = group * strips.per_group(); i < (group + 1) * strips.per_group(); ++i) {
    const double* partial = partials + 2 * (i * strips.group_width() + lane);
    sums.first += partial[0];
    sums.second += partial[1];
  }
  return sums;
}

template void strip_moments(const Strips&, std::int64_t, const float*, double*);
template void strip_moments(const Strips&, std::int64_t, const BFloat16*, double*);
template void strip_gradient_sums(const Strips&, std::int64_t, const float*, const GradientOperands<float>&, double*);
template void strip_gradient_sums(const Strips&, std::int64_t, const float*, const GradientOperands<BFloat16>&,
                                  double*);
template void strip_sums(const Strips&, std::int64_t, const float*, double*);
template void strip_sums(const Strips&, std::int64_t, const BFloat16*, double*);

}  // namespace trireme::onednn

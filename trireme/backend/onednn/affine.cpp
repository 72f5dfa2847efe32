#include "trireme/backend/onednn/affine.hpp"

namespace trireme::onednn {
namespace {

void set_columns(const Strip& strip, const ChannelAffine& affine, AffineColumns& columns) {
  spread_lanes(strip, affine.mean, columns.mean);
  spread_lanes(strip, affine.scale, columns.scale);
  spread_lanes(strip, affine.shift, columns.shift);
}

}  // namespace

template <typename Element>
void apply_affine(const Strips& strips, const ChannelAffine& affine, const AffineOperands<Element>& operands) {
  AffineColumns columns;
  std::int64_t prepared = -1;  // the first channel that the columns are for: neighbouring strips share them
#pragma omp for schedule(static)
  for (std::int64_t i = 0; i < strips.count(); ++i) {
    const Strip strip = strips[i];
    if (strip.first_channel != prepared) {
      set_columns(strip, affine, columns);
      prepared = strip.first_channel;
    }
    for_each_panel(strip, [&](const Panel& panel) { apply_affine(panel, columns, operands); });
  }
}

template <typename Element>
void apply_affine(const Strips& strips, std::int64_t group, const ChannelAffine& affine,
                  const AffineOperands<Element>& operands) {
  const std::int64_t begin = group * strips.per_group();
  AffineColumns columns;
  set_columns(strips[begin], affine, columns);
  for (std::int64_t i = begin + strips.per_group(); i-- > begin;)
    for_each_panel(strips[i], [&](const Panel& panel) { apply_affine(panel, columns, operands); });
}

template void apply_affine(const Strips&, const ChannelAffine&, const AffineOperands<float>&);
template void apply_affine(const Strips&, const ChannelAffine&, const AffineOperands<BFloat16>&);
template void apply_affine(const Strips&, std::int64_t, const ChannelAffine&, const AffineOperands<float>&);
template void apply_affine(const Strips&, std::int64_t, const ChannelAffine&, const AffineOperands<BFloat16>&);

}  // namespace trireme::onednn

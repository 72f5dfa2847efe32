#include "trireme/backend/onednn/max_pool_loops.hpp"

#include <algorithm>

#include "trireme/backend/onednn/vectors.hpp"

namespace trireme::onednn {
namespace {

// Cells of src.
struct Cells {
  std::int64_t h_begin, h_end, w_begin, w_end;
};

// Cells above this row and left of this column have been written by earlier windows.
struct Written {
  std::int64_t rows, columns;
};

template <typename Isa, bool kStream, typename Element>
TRIREME_INLINE void write(Element* to, const Vector<Isa>& value) {
  if constexpr (kStream && Isa::kStreams) {
    stream<Isa>(to, value);
  } else {
    store<Isa>(to, value);
  }
}

// Lanes that have given their gradient away hold zero in rest.
template <typename Isa, bool kStream, typename Element>
TRIREME_INLINE void spread_window(const MaxPoolPlane& p, const Cells& cells, const Written& written, std::int64_t out,
                                  std::int64_t lane, const MaxPoolOperands<Element>& o) {
  const Vector<Isa> zero{};
  Vector<Isa> best, rest, value;
  load<Isa>(o.dst + out + lane, best);
  load<Isa>(o.diff_dst + out + lane, rest);
  // Where the largest value is not positive, the activation lets nothing through.
  if (p.relu) rest = best > zero ? rest : zero;
  for (std::int64_t h = cells.h_begin; h < cells.h_end; ++h) {
    for (std::int64_t w = cells.w_begin; w < cells.w_end; ++w) {
      const std::int64_t at = (h * p.src_width + w) * p.lanes + lane;
      load<Isa>(o.src + at, value);
      const auto hit = value == best;
      Vector<Isa> given = hit ? rest : zero;
      rest = hit ? zero : rest;
      if (!kStream && (h < written.rows || w < written.columns)) {
        load<Isa>(o.diff_src + at, value);
        given += value;
      }
      write<Isa, kStream>(o.diff_src + at, given);
    }
  }
}

template <typename Element>
TRIREME_INLINE void clear(const MaxPoolPlane& p, const Cells& cells, Element* diff_src) {
  for (std::int64_t h = cells.h_begin; h < cells.h_end; ++h) {
    for (std::int64_t w = cells.w_begin; w < cells.w_end; ++w) {
      Element* cell = diff_src + (h * p.src_width + w) * p.lanes;
      for (std::int64_t l = 0; l < p.width; ++l) cell[l] = Element{};
    }
  }
}

template <typename Isa, bool kStream, typename Element>
TRIREME_INLINE void spread(const MaxPoolPlane& p, const MaxPoolOperands<Element>& o) {
  std::int64_t rows = 0;
  for (std::int64_t oh = 0; oh < p.dst_height; ++oh) {
    const std::int64_t top = oh * p.window.stride[0] - p.window.pad_before[0];
    const std::int64_t h_begin = std::max<std::int64_t>(top, 0);
    const std::int64_t h_end = std::min(top + p.window.kernel[0], p.src_height);
    clear(p, {rows, h_begin, 0, p.src_width}, o.diff_src);
    rows = std::max(rows, h_begin);
    std::int64_t columns = 0;
    for (std::int64_t ow = 0; ow < p.dst_width; ++ow) {
      const std::int64_t left = ow * p.window.stride[1] - p.window.pad_before[1];
      const Cells cells{h_begin, h_end, std::max<std::int64_t>(left, 0),
                        std::min(left + p.window.kernel[1], p.src_width)};
      clear(p, {rows, h_end, columns, cells.w_begin}, o.diff_src);
      const Written written{rows, columns};
      const std::int64_t out = (oh * p.dst_width + ow) * p.lanes;
      std::int64_t lane = 0;
      for (; lane + Isa::kWidth <= p.width; lane += Isa::kWidth)
        spread_window<Isa, kStream>(p, cells, written, out, lane, o);
      for (; lane < p.width; ++lane) spread_window<Scalar, false>(p, cells, written, out, lane, o);
      columns = std::max(columns, cells.w_end);
    }
    clear(p, {rows, h_end, columns, p.src_width}, o.diff_src);
    rows = std::max(rows, h_end);
  }
  clear(p, {rows, p.src_height, 0, p.src_width}, o.diff_src);
}

// Only floats are written around the cache.
template <typename Isa>
TRIREME_INLINE void spread_any(const MaxPoolPlane& plane, const MaxPoolOperands<float>& operands) {
  plane.stream ? spread<Isa, true>(plane, operands) : spread<Isa, false>(plane, operands);
}
template <typename Isa>
TRIREME_INLINE void spread_any(const MaxPoolPlane& plane, const MaxPoolOperands<BFloat16>& operands) {
  spread<Isa, false>(plane, operands);
}

template <typename Element>
TRIREME_AVX512 void spread_avx512(const MaxPoolPlane& plane, const MaxPoolOperands<Element>& operands) {
  spread_any<Avx512>(plane, operands);
}
template <typename Element>
TRIREME_AVX2 void spread_avx2(const MaxPoolPlane& plane, const MaxPoolOperands<Element>& operands) {
  spread_any<Avx2>(plane, operands);
}
template <typename Element>
void spread_baseline(const MaxPoolPlane& plane, const MaxPoolOperands<Element>& operands) {
  spread<Baseline, false>(plane, operands);
}

template <typename Element>
void spread_here(const MaxPoolPlane& plane, const MaxPoolOperands<Element>& operands) {
  if (has_avx512() && plane.width >= Avx512::kWidth) {
    spread_avx512(plane, operands);
  } else if (has_avx2()) {
    spread_avx2(plane, operands);
  } else {
    spread_baseline(plane, operands);
  }
  if (plane.stream) finish_streams();
}

}  // namespace

void spread_to_maxima(const MaxPoolPlane& plane, const MaxPoolOperands<float>& operands) {
  spread_here(plane, operands);
}
void spread_to_maxima(const MaxPoolPlane& plane, const MaxPoolOperands<BFloat16>& operands) {
  spread_here(plane, operands);
}

}  // namespace trireme::onednn

// Values on the host in plain row-major order: inputs and results of a Session.
#pragma once

#include <cstring>
#include <span>
#include <vector>

#include "trireme/base/error.hpp"
#include "trireme/base/shape.hpp"

namespace trireme {

class HostTensor {
 public:
  HostTensor() = default;
  explicit HostTensor(TensorType type) : type_(std::move(type)), data_(type_.shape.elements()) {}
  // Implicit, so that feeds can be written as numbers.
  // NOLINTNEXTLINE(google-explicit-constructor)
  HostTensor(float scalar) : HostTensor(TensorType{DataType::f32, {}}) { f32()[0] = scalar; }
  HostTensor(Shape shape, std::span<const float> values) : HostTensor(TensorType{DataType::f32, std::move(shape)}) {
    copy_from(values);
  }
  HostTensor(Shape shape, std::span<const std::int32_t> values)
      : HostTensor(TensorType{DataType::i32, std::move(shape)}) {
    copy_from(values);
  }

  const TensorType& type() const { return type_; }
  const Shape& shape() const { return type_.shape; }
  std::int64_t elements() const { return std::ssize(data_); }
  void* data() { return data_.data(); }
  const void* data() const { return data_.data(); }
  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(data_)); }
  std::span<float> f32() { return {reinterpret_cast<float*>(data_.data()), data_.size()}; }
  std::span<const float> f32() const { return {reinterpret_cast<const float*>(data_.data()), data_.size()}; }
  std::span<std::int32_t> i32() { return {reinterpret_cast<std::int32_t*>(data_.data()), data_.size()}; }
  std::span<const std::int32_t> i32() const {
    return {reinterpret_cast<const std::int32_t*>(data_.data()), data_.size()};
  }
  float scalar() const {
    if (elements() != 1) bad_input("a tensor of {} elements was read as one number", elements());
    return f32()[0];
  }

 private:
  template <typename T>
  void copy_from(std::span<const T> values) {
    if (values.size() != data_.size()) {
      bad_input("a tensor of shape {} has {} elements, but {} values were given", to_string(type_.shape), data_.size(),
                values.size());
    }
    std::memcpy(data_.data(), values.data(), values.size_bytes());
  }

  TensorType type_;
  std::vector<std::uint32_t> data_;  // f32 and i32 have four bytes
};

}  // namespace trireme

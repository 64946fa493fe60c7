// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include "base/error.hpp"
#include "control/fields.hpp"
#include "control/lease_fields.hpp"
#include "snapshot/byte_text.hpp"

#include <nlohmann/json.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weightfs::control {

/// Keys stay in the order in which fields.hpp lists them.
using Json = nlohmann::ordered_json;

/// A string that is not UTF-8 cannot stand in JSON: it is written in base64, under its key with
/// this suffix. Nothing is lost, and nobody who only has sane names ever sees it.
inline constexpr std::string_view kBase64Suffix = "_base64";

/// Parses without throwing anything but Error(kInvalid), which says what is wrong with the text.
[[nodiscard]] Json parse_json(std::string_view text);
/// One line; whatever is not UTF-8 is replaced (only messages can get here with such bytes).
[[nodiscard]] std::string dump_json(const Json& json);

[[noreturn]] void refuse_field(std::string_view key, std::string_view expected);

template <class Value>
[[nodiscard]] Json to_json(const Value& value);
template <class Value>
void from_json(const Json& json, Value& value, std::string_view key);

namespace detail {

template <class T>
inline constexpr bool kIsList = false;
template <class T>
inline constexpr bool kIsList<std::vector<T>> = true;
template <class T>
inline constexpr bool kIsOptional = false;
template <class T>
inline constexpr bool kIsOptional<std::optional<T>> = true;

template <class Value>
void write_field(Json& object, const std::string& key, const Value& value) {
  if constexpr (kIsOptional<Value>) {
    if (value) object[key] = to_json(*value);
  } else if constexpr (std::is_same_v<Value, std::string>) {
    if (snapshot::is_utf8(value)) {
      object[key] = value;
    } else {
      object[key + std::string(kBase64Suffix)] = snapshot::to_base64(value);
    }
  } else {
    object[key] = to_json(value);
  }
}

template <class Value>
void read_field(const Json& object, const std::string& key, Value& value) {
  if constexpr (std::is_same_v<Value, std::string>) {
    const std::string encoded_key = key + std::string(kBase64Suffix);
    if (object.contains(encoded_key)) {
      const Json& encoded = object[encoded_key];
      auto bytes =
          encoded.is_string() ? snapshot::from_base64(encoded.get<std::string>()) : std::nullopt;
      if (!bytes) refuse_field(encoded_key, "base64");
      value = std::move(*bytes);
      return;
    }
  }
  if (object.contains(key)) from_json(object[key], value, key);
}

}  // namespace detail

template <class Value>
Json to_json(const Value& value) {
  if constexpr (std::is_arithmetic_v<Value>) {
    return value;
  } else if constexpr (std::is_same_v<Value, std::string>) {
    return value;
  } else if constexpr (detail::kIsList<Value>) {
    Json list = Json::array();
    for (const auto& element : value) list.push_back(to_json(element));
    return list;
  } else {
    Json object = Json::object();
    each_field(value, [&](const char* key, const auto& member) {
      detail::write_field(object, key, member);
    });
    return object;
  }
}

/// Missing keys leave their members as they are, unknown ones are passed over (another version's);
/// a wrong type is Error(kInvalid) that names the key.
template <class Value>
void from_json(const Json& json, Value& value, std::string_view key) {
  if constexpr (std::is_same_v<Value, bool>) {
    if (!json.is_boolean()) refuse_field(key, "true or false");
    value = json.get<bool>();
  } else if constexpr (std::is_unsigned_v<Value>) {
    if (!json.is_number_unsigned()) refuse_field(key, "a whole number");
    value = json.get<Value>();
  } else if constexpr (std::is_integral_v<Value>) {
    if (!json.is_number_integer()) refuse_field(key, "a whole number");
    value = json.get<Value>();
  } else if constexpr (std::is_floating_point_v<Value>) {
    if (!json.is_number()) refuse_field(key, "a number");
    value = json.get<Value>();
  } else if constexpr (std::is_same_v<Value, std::string>) {
    if (!json.is_string()) refuse_field(key, "text");
    value = json.get<std::string>();
  } else if constexpr (detail::kIsList<Value>) {
    if (!json.is_array()) refuse_field(key, "a list");
    for (const Json& element : json) from_json(element, value.emplace_back(), key);
  } else if constexpr (detail::kIsOptional<Value>) {
    if (!json.is_null()) from_json(json, value.emplace(), key);
  } else {
    if (!json.is_object()) refuse_field(key, "an object");
    each_field(value,
               [&](const char* name, auto& member) { detail::read_field(json, name, member); });
  }
}

/// The value that a whole JSON text describes.
template <class Value>
[[nodiscard]] Value decode(std::string_view text) {
  Value value;
  from_json(parse_json(text), value, "the body");
  return value;
}

template <class Value>
[[nodiscard]] std::string encode(const Value& value) {
  return dump_json(to_json(value));
}

}  // namespace weightfs::control

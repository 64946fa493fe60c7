// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "net/url.hpp"

#include "base/error.hpp"
#include "net/curl_handles.hpp"

#include <algorithm>
#include <charconv>
#include <new>

namespace weightfs::net {

namespace {

constexpr unsigned kSetFlags = CURLU_PATH_AS_IS | CURLU_URLENCODE | CURLU_ALLOW_SPACE;

std::string without_query(std::string_view text) {
  return std::string(text.substr(0, text.find_first_of("?#")));
}

[[noreturn]] void throw_invalid(std::string_view text, const std::string& why) {
  throw Error(Errc::kInvalid, "URL " + without_query(text) + ": " + why);
}

std::string part(CURLU* handle, CURLUPart which, unsigned flags = 0) {
  char* raw = nullptr;
  const CURLUcode code = curl_url_get(handle, which, &raw, flags);
  const CurlText text(raw);
  if (code == CURLUE_OUT_OF_MEMORY) throw std::bad_alloc();
  return code == CURLUE_OK ? std::string(text.get()) : std::string();
}

/// "http:///a": curl would take "a" for the host.
bool has_empty_host(std::string_view text) {
  const std::size_t end = text.find_first_of(":/?#");
  return end != std::string_view::npos && text.substr(end).starts_with(":///");
}

void set_url(CURLU* handle, std::string_view text) {
  // curl takes a C string: a NUL would cut it.
  const std::string copy(text);
  if (copy.find('\0') != std::string::npos) throw_invalid("", "holds a NUL");
  if (copy.empty() || has_empty_host(copy)) throw_invalid(text, "names no host");
  const CURLUcode code = curl_url_set(handle, CURLUPART_URL, copy.c_str(), kSetFlags);
  if (code == CURLUE_OUT_OF_MEMORY) throw std::bad_alloc();
  if (code != CURLUE_OK) throw_invalid(text, curl_url_strerror(code));
}

UrlHandle new_handle() {
  UrlHandle handle(curl_url());
  if (!handle) throw std::bad_alloc();
  return handle;
}

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return text;
}

std::uint16_t port_number(const std::string& text) {
  std::uint16_t port = 0;
  std::from_chars(text.data(), text.data() + text.size(), port);
  return port;
}

}  // namespace

bool Origin::is_loopback() const noexcept {
  return host == "localhost" || host.ends_with(".localhost") || host == "[::1]" ||
         (host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string::npos);
}

std::string Origin::authority() const {
  const bool usual = port == (scheme == "https" ? 443 : 80);
  return usual ? host : host + ":" + std::to_string(port);
}

Url Url::parse(std::string_view text) {
  if (text.find('#') != std::string_view::npos) throw_invalid(text, "has a fragment");
  // An empty Url resolves a relative reference to nothing.
  if (text.find("://") == std::string_view::npos) throw_invalid(text, "is not absolute");
  return Url().resolve(text);
}

Url Url::resolve(std::string_view reference) const {
  const UrlHandle handle = new_handle();
  if (!text_.empty()) set_url(handle.get(), text_);
  set_url(handle.get(), reference);
  if (curl_url_set(handle.get(), CURLUPART_FRAGMENT, nullptr, 0) != CURLUE_OK) {
    throw std::bad_alloc();
  }

  Url url;
  url.origin_.scheme = lower(part(handle.get(), CURLUPART_SCHEME));
  if (url.origin_.scheme != "http" && url.origin_.scheme != "https") {
    throw_invalid(reference, "is neither http nor https");
  }
  if (!part(handle.get(), CURLUPART_USER).empty() ||
      !part(handle.get(), CURLUPART_PASSWORD).empty()) {
    throw Error(Errc::kInvalid, "a URL with a user name or password in it is not taken");
  }
  url.origin_.host = lower(part(handle.get(), CURLUPART_HOST));
  url.origin_.port = port_number(part(handle.get(), CURLUPART_PORT, CURLU_DEFAULT_PORT));
  if (url.origin_.host.empty() || url.origin_.port == 0) throw_invalid(reference, "names no host");
  url.path_ = part(handle.get(), CURLUPART_PATH);
  url.query_ = part(handle.get(), CURLUPART_QUERY);
  url.text_ = part(handle.get(), CURLUPART_URL);
  return url;
}

std::string Url::display() const {
  return origin_.scheme + "://" + origin_.authority() + path_;
}

}  // namespace weightfs::net

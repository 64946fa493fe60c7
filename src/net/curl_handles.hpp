// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#pragma once

#include <curl/curl.h>

#include <memory>
#include <type_traits>

namespace weightfs::net {

template <auto kFree>
struct CurlDeleter {
  template <class Handle>
  void operator()(Handle* handle) const noexcept {
    kFree(handle);
  }
};

using EasyHandle = std::unique_ptr<CURL, CurlDeleter<curl_easy_cleanup>>;
using MultiHandle = std::unique_ptr<CURLM, CurlDeleter<curl_multi_cleanup>>;
using UrlHandle = std::unique_ptr<CURLU, CurlDeleter<curl_url_cleanup>>;
using CurlText = std::unique_ptr<char, CurlDeleter<curl_free>>;
using HeaderList = std::unique_ptr<curl_slist, CurlDeleter<curl_slist_free_all>>;

}  // namespace weightfs::net

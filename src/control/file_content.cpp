// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "control/file_content.hpp"

#include "base/error.hpp"

#include <future>
#include <memory>
#include <optional>
#include <utility>

namespace weightfs::control {

std::string file_content(fetch::Fetcher& fetcher, const fetch::Target& target,
                         std::stop_token stop) {
  const std::uint64_t size = target.file().size;
  if (size == 0) return {};
  const fetch::FillPtr fill = fetcher.fill(target);
  fill->want(fetch::Want::kFile);

  // Answered exactly once, whether it is cancelled or not.
  const auto answer = std::make_shared<std::promise<std::string>>();
  auto content = answer->get_future();
  const fetch::ReadId id = fill->read(0, size, [answer](const fetch::ReadResult& result) {
    if (result.error) {
      answer->set_exception(std::make_exception_ptr(*result.error));
    } else {
      answer->set_value(
          std::string(reinterpret_cast<const char*>(result.data.data()), result.data.size()));
    }
  });
  const std::stop_callback on_stop(std::move(stop), [&] { fill->cancel(id); });
  return content.get();
}

}  // namespace weightfs::control

// SPDX-License-Identifier: Apache-2.0
// Copyright the weightfs authors
#include "cli/commands.hpp"

#include "base/quantity.hpp"
#include "base/timestamp.hpp"
#include "cli/input_check.hpp"
#include "cli/printable.hpp"
#include "cli/table.hpp"
#include "control/json_codec.hpp"

#include <fmt/format.h>

namespace weightfs::cli {

namespace {

std::string resident_text(std::uint64_t resident, std::uint64_t size, bool complete) {
  if (complete) return "complete";
  if (resident == 0 || size == 0) return "-";
  return fmt::format("{}%", static_cast<unsigned>(static_cast<double>(resident) * 100 /
                                                  static_cast<double>(size)));
}

std::string pin_text(const api::Model& model) {
  if (!model.pinned) return "";
  return model.pin_until == 0 ? "pinned" : "until " + show_timestamp(model.pin_until);
}

/// The same with whose it is and why.
std::string pin_details(const api::Model& model) {
  if (!model.pinned) return "";
  std::string text = ", pinned";
  if (model.pin_until != 0) text += " until " + show_timestamp(model.pin_until);
  if (!model.pin_owner.empty()) text += " by " + printable(model.pin_owner);
  if (!model.pin_reason.empty()) text += fmt::format(" ({})", printable(model.pin_reason));
  return text;
}

class LsCommand final : public Command {
 public:
  void declare(Options& options) override {
    options.optional_argument("NAME", "A model, to list its files.", name_);
  }

  ExitCode run(Context& context) override {
    if (name_.empty()) {
      list_models(context);
    } else {
      check_name_argument(name_);
      list_files(context);
    }
    return ExitCode::kDone;
  }

 private:
  static void list_models(Context& context) {
    const std::vector<api::Model> models = context.client().models();
    if (context.json()) {
      control::Json json;
      json["models"] = control::to_json(models);
      context.print_json(json);
      return;
    }
    Table table({{"NAME"},
                 {"SIZE", Align::kRight},
                 {"LOCAL", Align::kRight},
                 {"FILES", Align::kRight},
                 {"PIN"},
                 {"REVISION"},
                 {"SOURCE"},
                 {"ROLLBACK"}});
    for (const api::Model& model : models) {
      // A revision without a name of its own is a key: the first digits are enough for a person.
      const bool key = model.revision == model.key;
      table.add({model.name, readable_size(model.bytes),
                 resident_text(model.resident_bytes, model.bytes, model.complete),
                 fmt::format("{}", model.file_count), pin_text(model),
                 key ? model.revision.substr(0, 12) : model.revision, model.source,
                 model.rollback});
    }
    table.print(context.streams());
  }

  void list_files(Context& context) const {
    const api::ModelDetail detail = context.client().model(name_);
    if (context.json()) {
      context.print_json(control::to_json(detail));
      return;
    }
    const api::Model& model = detail.model;
    context.streams().out << fmt::format(
        "{}: {}, revision {}, {}{}{}\n", printable(model.name), printable(model.source),
        printable(model.revision), readable_size(model.bytes), pin_details(model),
        model.rollback.empty()
            ? ""
            : fmt::format(", rollback: {} ({})", model.rollback, printable(model.confirmed)));
    Table table({{"PATH"}, {"SIZE", Align::kRight}, {"LOCAL", Align::kRight}, {"SHA256"}});
    for (const api::ModelFile& file : detail.files) {
      table.add({file.path, readable_size(file.size),
                 resident_text(file.resident_bytes, file.size, file.complete), file.sha256});
    }
    table.print(context.streams());
  }

  std::string name_;
};

}  // namespace

CommandEntry ls_command() {
  return {
      .name = "ls",
      .summary = "List the models, or the files of one",
      .text =
          "Shows for each model, or for each file of NAME, its size and how much of it is in the "
          "local "
          "store: 'complete' means verified, to the last byte. A sha256 that is not known yet is "
          "empty: it is learned when the file is fetched.",
      .make = [] { return std::unique_ptr<Command>(std::make_unique<LsCommand>()); },
  };
}

}  // namespace weightfs::cli

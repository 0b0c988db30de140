// The writer: a bounded queue and a thread of its own.
#include "actors/journal/journal.hpp"

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <new>
#include <stdexcept>
#include <thread>
#include <variant>
#include <vector>

#include "actors/journal/held_bytes.hpp"
#include "actors/journal/mask.hpp"
#include "messages/wire/bus.hpp"
#include "messages/wire/msgpack.hpp"

namespace fermata {
// Named, not anonymous: journal_writer::impl holds these, and in a unity build its file is included by another.
namespace journal_detail {

struct timer_tick {};

struct entry {
    time_ns time = 0;
    bus_party from = bus_party::node, to = bus_party::node;
    std::variant<bus_message, timer_tick, journal_header> content;
    std::size_t held_bytes = 0;
};

// Throws std::runtime_error that names the file, from each call that finds it can't be written.
class output_file {
public:
    // A file of an earlier run becomes FILE.1, as at a rotation: a restart doesn't cost what led to it.
    explicit output_file(const journal_options& options) : options_(options) {
        std::error_code ignored;
        if (std::filesystem::is_regular_file(options_.file, ignored) && std::filesystem::file_size(options_.file, ignored) > 0)
            shift_names();
        open();
    }
    ~output_file() { close(); }
    output_file(const output_file&) = delete;
    output_file& operator=(const output_file&) = delete;

    bool full(std::size_t more) const { return bytes_ != 0 && bytes_ + more > options_.file_bytes_max; }
    void write(const std::string& bytes) {
        if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) fail();
        bytes_ += bytes.size();
    }
    void flush() {
        if (std::fflush(file_) != 0) fail();
    }
    void rotate() {
        flush();
        close();
        shift_names();
        open();
    }

private:
    void shift_names() {
        const auto name = [&](std::uint32_t i) { return options_.file + "." + std::to_string(i); };
        const std::uint32_t last = options_.files_max > 0 ? options_.files_max - 1 : 0;
        if (last == 0) std::remove(options_.file.c_str());
        else std::remove(name(last).c_str());
        for (std::uint32_t i = last; i > 1; --i) std::rename(name(i - 1).c_str(), name(i).c_str());
        if (last > 0) std::rename(options_.file.c_str(), name(1).c_str());
    }
    void open() {
        file_ = std::fopen(options_.file.c_str(), "wb");
        bytes_ = 0;
        if (file_ == nullptr) fail();
    }
    void close() {
        if (file_ != nullptr) std::fclose(file_);
        file_ = nullptr;
    }
    [[noreturn]] void fail() {
        throw std::runtime_error("journal " + options_.file + ": can't be written: " + std::strerror(errno));
    }
    const journal_options& options_;
    std::FILE* file_ = nullptr;
    std::uint64_t bytes_ = 0;
};

}  // namespace journal_detail

struct journal_writer::impl {
    using entry = journal_detail::entry;
    using timer_tick = journal_detail::timer_tick;
    using output_file = journal_detail::output_file;

    impl(journal_options o, journal_header h)
        : options(std::move(o)), mask(options.text, h.vocabulary), file(options), header(std::move(h)) {
        header.text = options.text;
        write_header();
        file.flush();
        thread = std::thread([this] { work(); });
    }

    struct loss {
        std::size_t before = 0;  // index in the queue
        std::uint64_t records = 0;
        time_ns time = 0;
    };

    void push(entry each) {
        {
            std::lock_guard lock(mutex);
            const bool fits = queue.size() < options.queue_records_max && queued_bytes + each.held_bytes <= options.queue_bytes_max;
            if (broken || (!fits && !queue.empty())) {
                ++lost_total;
                if (!broken) ++lost;
                return;
            }
            each.time = each.time == 0 ? last_time : each.time;
            last_time = each.time;
            queued_bytes += each.held_bytes;
            if (lost > 0) losses.push_back({queue.size(), std::exchange(lost, 0), each.time});
            queue.push_back(std::move(each));
            ++pushed;
        }
        wake.notify_one();
    }

    void work() {
        std::vector<entry> batch;
        std::vector<loss> batch_losses;
        for (;;) {
            {
                std::unique_lock lock(mutex);
                written += batch.size();
                batch.clear();
                batch_losses.clear();
                idle.notify_all();
                wake.wait(lock, [&] { return ending || !queue.empty(); });
                if (queue.empty()) break;
                batch.swap(queue);
                batch_losses.swap(losses);
                queued_bytes = 0;
            }
            write_or_break(batch, batch_losses);
        }
        if (broken) return;
        guarded([&] {
            if (lost > 0) put(loss_record(lost, last_time));
            file.flush();
        });
    }

    // Nothing that goes wrong with the journal (a full disk, no memory for a copy) may end the process.
    template <class Work>
    bool guarded(Work&& work) {
        std::string why = "an exception of an unknown kind";
        try {
            work();
            return true;
        } catch (const std::bad_alloc&) {
            why = "journal " + options.file + ": no memory for a record";
        } catch (const std::exception& error) {
            why = error.what();
        } catch (...) {
        }
        {
            std::lock_guard lock(mutex);
            broken = true;
        }
        try {
            if (options.warn) options.warn(why + "; nothing more is recorded");
        } catch (...) {  // its receiver's trouble
        }
        return false;
    }

    void write_or_break(const std::vector<entry>& batch, const std::vector<loss>& batch_losses) {
        std::size_t done = 0;
        if (!broken && guarded([&] { write(batch, batch_losses, done); })) return;
        std::lock_guard lock(mutex);
        lost_total += batch.size() - done;
    }

    // `done`: records known to be in the file.
    void write(const std::vector<entry>& batch, const std::vector<loss>& batch_losses, std::size_t& done) {
        std::size_t next = 0;
        for (std::size_t i = 0; i < batch.size(); ++i) {
            for (; next < batch_losses.size() && batch_losses[next].before == i; ++next)
                put(loss_record(batch_losses[next].records, batch_losses[next].time));
            std::string bytes;
            if (const auto* fresh = std::get_if<journal_header>(&batch[i].content)) {
                header = *fresh;
                header.text = options.text;
                wire::write_msgpack(bytes, header);
            } else {
                pack(bytes, batch[i]);
            }
            put(bytes);
        }
        file.flush();
        done = batch.size();
    }

    void pack(std::string& bytes, const entry& each) {
        wire::pack_writer to(bytes);
        to.map(5);
        to.text("time");
        to.signed_integer(each.time);
        to.text("from");
        to.text(wire::enum_name(each.from));
        to.text("to");
        to.text(wire::enum_name(each.to));
        to.text("type");
        if (const auto* message = std::get_if<bus_message>(&each.content)) {
            to.text(wire::type_name(*message));
            to.text("payload");
            if (options.text) {
                wire::write_bus(bytes, *message);
            } else {
                auto masked = *message;
                mask.apply(masked);
                wire::write_bus(bytes, masked);
            }
        } else {
            to.text("tick");
            to.text("payload");
            to.nil();
        }
    }

    static std::string loss_record(std::uint64_t records, time_ns time) {
        std::string bytes;
        wire::pack_writer to(bytes);
        to.map(2);
        to.text("time");
        to.signed_integer(time);
        to.text("dropped");
        to.unsigned_integer(records);
        return bytes;
    }

    void write_header() {
        std::string bytes;
        wire::write_msgpack(bytes, header);
        file.write(bytes);
    }

    void put(const std::string& bytes) {
        if (file.full(bytes.size())) {
            file.rotate();
            ++rotations;
            write_header();
            std::string note;
            wire::pack_writer to(note);
            to.map(1);
            to.text("rotated");
            to.unsigned_integer(rotations);
            file.write(note);
        }
        file.write(bytes);
    }

    journal_options options;
    journal_mask mask;
    output_file file;
    journal_header header;
    std::uint64_t rotations = 0;

    std::mutex mutex;
    std::condition_variable wake, idle;
    std::vector<entry> queue;
    std::vector<loss> losses;
    std::uint64_t lost = 0, lost_total = 0, pushed = 0, written = 0, queued_bytes = 0;
    std::atomic<bool> broken{false};  // set once, under the mutex
    time_ns last_time = 0;
    bool ending = false;
    std::thread thread;
};

journal_writer::journal_writer(journal_options options, journal_header header)
    : impl_(std::make_unique<impl>(std::move(options), std::move(header))) {}

journal_writer::~journal_writer() {
    {
        std::lock_guard lock(impl_->mutex);
        impl_->ending = true;
    }
    impl_->wake.notify_one();
    impl_->thread.join();
}

void journal_writer::record(time_ns time, bus_party from, bus_party to, bus_message message) {
    if (impl_->broken) {
        std::lock_guard lock(impl_->mutex);
        ++impl_->lost_total;
        return;
    }
    const std::size_t bytes = held_bytes(message);
    impl_->push({time, from, to, std::move(message), bytes});
}

void journal_writer::record_tick(time_ns time) {
    impl_->push({time, bus_party::scheduler, bus_party::scheduler, impl::timer_tick{}, sizeof(impl::entry)});
}

void journal_writer::begin_life(journal_header header) {
    impl_->push({0, bus_party::node, bus_party::node, std::move(header), sizeof(impl::entry)});
}

void journal_writer::flush() {
    std::unique_lock lock(impl_->mutex);
    const auto target = impl_->pushed;
    impl_->wake.notify_one();
    impl_->idle.wait(lock, [&] { return impl_->written >= target; });
}

bool journal_writer::broken() const { return impl_->broken; }

std::uint64_t journal_writer::dropped() const {
    std::lock_guard lock(impl_->mutex);
    return impl_->lost_total;
}

}  // namespace fermata

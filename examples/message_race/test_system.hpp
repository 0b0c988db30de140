// An actor system that does nothing by itself, behind three calls: CAF 0.17's test coordinator, or the deterministic
// fixture of CAF 1.x's test library. The two have nothing in common, which is why this one header beside
// actors/caf_compat.hpp asks for CAF's version.
#pragma once

#include "actors/handles.hpp"

#if FERMATA_CAF_1
#include <caf/test/fixture/deterministic.hpp>
#include <caf/test/reporter.hpp>
#else
#include <caf/scheduler/test_coordinator.hpp>
#endif

namespace fermata {

#if FERMATA_CAF_1

class test_system {
public:
    caf::actor_system& get() { return fixture_.sys; }
    void run() { fixture_.dispatch_messages(); }
    // One message for this actor: the first of this type.
    template <class Message, class Handle>
    bool run_one(const Handle& whom) {
        return fixture_.prepone<Message>().to(whom) && fixture_.dispatch_message();
    }
    // Until a message for this actor waits; false if none comes.
    template <class Handle>
    bool run_until_waiting_for(const Handle& whom) {
        for (int i = 0; i < 10000 && fixture_.mail_count() > 0; ++i) {
            if (fixture_.mail_count(whom) > 0) return true;
            fixture_.dispatch_message();
        }
        return fixture_.mail_count(whom) > 0;
    }

private:
    // What the fixture takes for granted: that CAF knows our types, and where to report to.
    struct surroundings {
        std::unique_ptr<caf::actor_system_config> types = bus::make_config(1, false);
        std::unique_ptr<caf::test::reporter> reporter = caf::test::reporter::make_default();
        surroundings() { caf::test::reporter::instance(reporter.get()); }
    };
    surroundings surroundings_;
    caf::test::fixture::deterministic fixture_;
};

#else

class test_system {
public:
    test_system() : config_(make()), system_(*config_) {}

    caf::actor_system& get() { return system_; }
    void run() { coordinator().run(); }
    // One message for this actor: the first, of this type.
    template <class Message, class Handle>
    bool run_one(const Handle& whom) {
        return coordinator().prioritize(whom) && coordinator().try_run_once();
    }
    // Everybody but this actor; true when a message for it waits then.
    template <class Handle>
    bool run_until_waiting_for(const Handle& whom) {
        auto* held = dynamic_cast<caf::resumable*>(caf::actor_cast<caf::abstract_actor*>(whom));
        coordinator().run_jobs_filtered([held](caf::resumable* job) { return job != held; });
        return coordinator().has_job();
    }

private:
    static std::unique_ptr<caf::actor_system_config> make() {
        auto config = std::make_unique<caf::actor_system_config>();
        config->set("scheduler.policy", caf::atom("testing"));
        register_messages(*config);
        return config;
    }
    caf::scheduler::test_coordinator& coordinator() {
        return dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler());
    }

    std::unique_ptr<caf::actor_system_config> config_;
    caf::actor_system system_;
};

#endif

}  // namespace fermata

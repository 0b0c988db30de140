// A race, written down in both orders. A client leaves in the very moment in which its last token is computed: does
// Scheduler hear of the cancel first, or of the result? On the simulator's bus nothing happens by itself; a driver says
// which message is delivered next, so both orders are a few lines each, and the same on every run.
//
// What has to hold in both: the choice ends once, for one reason; afterwards the lane and every page are free.
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "wired_node.hpp"

namespace {

using namespace fermata;
using namespace fermata::simulation;

void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "message_race: %s\n", what);
    std::exit(1);
}

// A node on the oracle, one request for one token, and its cycle on the way to Program.
struct stage {
    bus wires;
    wired_node node;

    stage() : node(options(), {}, wires) {
        auto choice = std::make_shared<sequence_spec>();
        choice->request = request_id(1);
        choice->prompt = token_run({3, 1, 4, 1, 5, 9, 2, 6});
        choice->guard.max_new_tokens = token_pos(1);
        wires.send(peer::frontend, peer::scheduler, enqueue{request_id(1), {choice}, 0});
        node.deliver(peer::frontend, peer::scheduler);
        if (wires.waiting(peer::scheduler, peer::resources)) {  // where should it start from?
            node.deliver(peer::scheduler, peer::resources);
            node.deliver(peer::resources, peer::scheduler);
        }
        require(wires.waiting(peer::scheduler, peer::program), "a plan should be on its way to Program");
    }
    static simulation::node_options options() {
        simulation::node_options o;
        o.model.vocabulary = 100;
        o.model.state_bytes = 0;
        o.device.max_context_tokens = 256;
        o.device.max_concurrency = 1;
        return o;
    }
    void client_leaves() { wires.send(peer::frontend, peer::scheduler, cancel_request{request_id(1)}); }

    // Everything else in order of sending; then counts how the choice ended.
    finish_reason settle() {
        node.settle();
        finish_reason how = finish_reason::none;
        int ends = 0;
        while (wires.waiting(peer::scheduler, peer::frontend)) {
            const auto envelope = wires.take(peer::scheduler, peer::frontend);
            const auto* rows = std::get_if<outputs>(&envelope.message);
            if (rows == nullptr) continue;
            for (const auto& row : rows->rows)
                if (row.row.finish != finish_reason::none) how = row.row.finish, ++ends;
        }
        require(ends == 1, "the choice has to end exactly once");
        require(node.scheduling().quiet(), "Scheduler still holds the request");
        require(node.numbers().pages_active == 0, "pages are still taken");
        require(node.device().check_integrity().empty(), "Program's tables disagree");
        return how;
    }
};

}  // namespace

int main() {
    {
        stage first;
        first.client_leaves();
        first.node.deliver(peer::frontend, peer::scheduler);  // the cancel, before
        first.node.deliver(peer::scheduler, peer::program);   // the unit runs all the same
        require(first.settle() == finish_reason::cancelled, "cancel came first: the choice ends as cancelled");
        std::puts("cancel, then result: cancelled, once");
    }
    {
        stage second;
        second.client_leaves();
        second.node.deliver(peer::scheduler, peer::program);  // the unit runs
        second.node.deliver(peer::program, peer::scheduler);  // its result, before
        second.node.deliver(peer::frontend, peer::scheduler);  // the cancel: nobody's any more
        require(second.settle() == finish_reason::length, "the result came first: the choice has its token");
        std::puts("result, then cancel: complete, once");
    }
    return 0;
}

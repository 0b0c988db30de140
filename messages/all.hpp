// Every message type, once. Round-trip tests, CAF type registration, the journal and the field-list hash walk this.
#pragma once

#include "messages/context.hpp"
#include "messages/cycle.hpp"
#include "messages/generation.hpp"
#include "messages/ingress.hpp"
#include "messages/serving.hpp"
#include "messages/transfer.hpp"

namespace fermata {

// Parts that only appear inside other messages.
using message_parts =
    type_list<token_bias, sampling_params, guard_spec, report_spec, sequence_spec, token_logprob, bind_order,
              prefill_order, shortage, bind_result, row_result, pause_result, occupancy, point_view, program_view,
              page_copy, state_copy, sequence_usage, choice_output, client_error, token_report, request_usage>;

// What travels on the bus by itself.
using bus_messages =
    type_list<submit, accepted, rejected, text_delta, finished, failed, prepared, tokenize_text, tokenized, detokenize_tokens,
              detokenized, enqueue, enqueue_result, cancel_request, outputs, drain, drained, cycle_plan, cycle_done,
              program_notice, choose_source, source_chosen, choose_victims, victims_chosen, checkpoint_published,
              checkpoint_dropped, checkpoint_adopted, copy_order, copy_done>;

}  // namespace fermata

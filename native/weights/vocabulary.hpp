// The vocabulary a GGUF file carries (keys tokenizer.*), as plain data for the text layer.
#pragma once

#include "messages/vocabulary.hpp"
#include "native/weights/model_file.hpp"

namespace fermata {

// Works for a file without tensors. Throws model_file_error when the file is a folder, has no vocabulary, or one whose
// parts contradict each other (types of another length, ids beyond it).
//
// end_of_generation: the ids the file names as eos, eot, eom, and those control or user-defined tokens whose text is a
// known end marker (<|im_end|>, <|eot_id|>, <|endoftext|>, <end_of_turn>, ...), ascending.
vocabulary_description read_vocabulary(const model_file& file);

}  // namespace fermata

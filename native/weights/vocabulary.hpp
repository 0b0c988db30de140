// The vocabulary a GGUF file carries (keys tokenizer.*), as plain data for the text layer.
#pragma once

#include "messages/vocabulary.hpp"
#include "native/weights/model_file.hpp"

namespace fermata {

// Works for a file without tensors. Throws model_file_error when the file is a folder, has no vocabulary, or one whose
// parts contradict each other (types of another length, ids beyond it).
//
// end_of_generation: the ids the file names as eos, eot or eom, ascending. Which others end an answer by their name is
// the text layer's to know.
vocabulary_description read_vocabulary(const model_file& file);

}  // namespace fermata

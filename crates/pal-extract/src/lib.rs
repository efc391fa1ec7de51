//! What a conversation holds, drawn from it word for word: the user's words, files, commands, errors, open tasks; and a
//! summary in nine sections made of them. No model is asked.

//! Recorded sessions through the engine, turn by turn, with the simulator as the provider and the recorded times as
//! the clock.

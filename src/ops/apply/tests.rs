//! Kills, failures and meddling at every change that the engine makes.

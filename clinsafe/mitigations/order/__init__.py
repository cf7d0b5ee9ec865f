"""What the temporal filter reads with: order of two events, steps, states of a treatment or condition."""

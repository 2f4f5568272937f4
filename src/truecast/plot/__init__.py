"""Pictures of forecasts: each a frozen object that is computed first and drawn, with matplotlib, on request."""

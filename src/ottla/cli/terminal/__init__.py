"""What commands print, ask and fail with."""

"""Operations of the host by their subject, mixed into `Operations`."""

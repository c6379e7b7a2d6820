"""Records of a topic: pages of them, one of them, searches, the live tail, and producing."""

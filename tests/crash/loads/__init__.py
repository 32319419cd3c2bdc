"""The clients of the crash test: each sends one kind of requests and keeps books about the answers."""

"""Users, rights and logins: both servers grant and refuse the same."""

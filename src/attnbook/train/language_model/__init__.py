"""What the trainers of both back ends share."""

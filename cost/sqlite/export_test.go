package sqlite

// Exec lets tests damage a store.
func (s *Store) Exec(query string) error {
	_, err := s.db.Exec(query)
	return err
}

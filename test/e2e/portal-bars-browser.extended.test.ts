// The same on PostgreSQL.
import './portal-bars-browser.test.ts'

// The same tasks with the script.
import './portal-deliveries-browser.test.ts'

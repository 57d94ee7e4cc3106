// The same tasks with the script.
import './portal-browser.test.ts'

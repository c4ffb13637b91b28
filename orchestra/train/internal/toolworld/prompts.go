package toolworld

import "strings"

// Prompts are further texts of tasks, as people word them, with their needs.
func Prompts() (list []Text) {
	add := func(lines string, find, compute bool) {
		for l := range strings.Lines(strings.TrimSpace(lines)) {
			list = append(list, Text{Text: strings.TrimSpace(l), LookUp: find, Compute: compute})
		}
	}
	add(asksFacts, true, false)
	add(asksSkill, false, false)
	add(asksNumbers, false, true)
	add(asksBoth, true, true)
	return list
}

const asksFacts = `
What is our refund policy?
Which versions of the driver does the product support?
How do I install the agent on Windows?
How do I remove a device from my account?
Where can I change the language of the app?
What does error 4012 mean?
Who is responsible for the billing team?
Which method returns the number of open connections?
Which function writes a file and creates it if necessary?
What is the default timeout of the HTTP client?
How can I enable two-factor authentication?
What changed in release 3.2?
When is the office closed this year?
What does the contract say about termination?
Which form do I need for parental leave?
How do I configure the proxy for the package manager?
Who won the cup final in 1998?
When was the bridge over the river completed?
Which actor played the detective in the series?
What is the latest news about the merger?
In which country was the inventor of the device born?
Does the library support streaming?
What is the name of the constant for the maximum size?
What does the standard library offer for reading lines?
Tell me about the warranty of the pump.
Which parameters does the endpoint for orders take?
How do I convert a string to an integer in this language?
What happens if the queue is full?
Find the paragraph about data protection.
Name the capital of the province.
Since when has the company existed?
Which rivers cross the border of the state?
What must I type to list all sessions?
According to the handbook, how long is the trial period?
Who is the original author of the compiler?
How big is the workforce of the firm?
How long are backups kept?
Which command shows the version of the tool?
Is there a limit for uploads?
List the requirements for the certificate.
`

const asksSkill = `
Hello
Hi, how are you?
Thanks a lot!
Write a poem about autumn.
Write a short story about a fox.
Summarise this text: The meeting was long and nothing was decided.
Explain recursion to a child.
Explain the difference between a list and a tuple.
Rewrite this more politely: Send me the file now.
Give me five names for a coffee shop.
Translate to German: I would like a table for two.
Write a regular expression that matches an e-mail address.
Write a function that reverses a string.
Is the following sentence grammatical: He go to school.
Make this shorter: Due to the fact that it rained, we stayed at home.
What rhymes with orange?
Who are you?
Draft an invitation to a birthday party.
Turn these notes into bullet points: milk, eggs, bread.
What is the plural of mouse?
Classify this ticket as bug or feature: Please add a dark mode.
Extract the names from this sentence: Anna met Peter.
Give an example of irony.
What are the pros and cons of working from home?
Suggest a title for an essay about the sea.
Fix the bug in this code: for i in range(10) print(i)
Why is the sky blue?
What is the meaning of life?
Tell me a joke.
What does the word ubiquitous mean?
Give a synonym of happy.
Use the word serendipity in a sentence.
Which of these is a fruit: chair, plum, lamp?
Sort these words by the alphabet: pear, apple, fig.
Say yes or no: is ice cold?
Name three colours.
Name a word for a person who writes books.
What is the French word for bread?
How would you say this in formal English: gonna be late?
Spell the number 42 in words.
Decide whether this comment is rude: You did that well.
Find the mistake in this sentence: She have two cats.
Does this text sound happy or sad: I lost my keys again.
Put these into the plural: child, foot, tooth.
Change the tense of: I am walking.
Which word is left out: salt and …?
Continue this line: Once upon a time
Correct my grammar: me and him goes there
Which is heavier, a kilo of feathers or a kilo of iron?
`

const asksNumbers = `
Is 97 prime?
What's the total of 12, 30 and 7?
What's half of 356?
45 minus 17 plus 3
Subtract 19 from 230.
Multiply 14 by 22, then divide by 4.
How much is a third of 780?
Add 99 to 1001.
What is the square root of 2 to ten digits?
If 3 workers need 4 days, how long do 5 workers need?
A train goes 120 km in 90 minutes. What is its speed in km/h?
How many days are between 3 March 2019 and 8 July 2021?
Solve 3x + 7 = 31.
What is 2^64?
How many combinations of 5 out of 49 are there?
I invest 1000 at 4 percent for 12 years. How much do I have?
Sort these numbers: 9, 4, 17, 3, 22.
What is the median of 3, 9, 1, 27, 14?
Convert 250 in decimal to binary.
What is the standard deviation of 2, 4, 4, 4, 5, 5, 7, 9?
How many trailing zeros does 100! have?
How many perfect squares are below 5000?
What is the smallest number with exactly twelve divisors?
Count the words of length four that can be made of the letters a to f.
How many ways are there to climb 12 stairs if one takes one or two at a time?
Simulate a walk: start at 10 and halve the number if it is even, else add 3, for 20 steps.
Find the greatest number below 10000 that is divisible by 37 and 11.
How often does the digit 3 occur in 3^200?
What is the product of the digits of 9!?
Count how many triples of numbers below 30 satisfy the theorem of Pythagoras.
What is the 20th prime?
Count the leap years between 1900 and 2024.
What is the greatest common divisor of 1071 and 462?
How many numbers below 1000 are the sum of two cubes?
Factorise 360360.
Which number below 500 has the most divisors?
How many different divisors has 5040?
Count the pairs of numbers below 50 whose sum is prime.
If all numbers from 1 to 200 are multiplied, with how many zeros does the product end?
What is the sum of all multiples of 7 below 1000?
Repeat 15 times: double the number and subtract its last digit; begin with 7. What comes out?
Add up the first hundred odd numbers.
`

const asksBoth = `
How many years after the founding of the city was the university opened?
By how much did the revenue grow from 2021 to 2023?
What is twice the page size of the database?
How much older is the first bridge than the second?
What is the total population of the three largest cities of the region?
How many seconds is the default timeout of the client in minutes?
What is the difference between the heights of the two towers?
How many bytes are four blocks of the cipher?
`
